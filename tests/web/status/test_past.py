"""Lines and transitions come from a cache: read in the background, one at a time, only while somebody looks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pytest

from exporter.errors import DatabaseTimeout, MissingCapability
from exporter.fairness.audit import CAPPED
from exporter.fairness.events import Event
from exporter.queue.history import Drawn, Kind, Line, RequestedWindow
from exporter.queue.render import Window
from exporter.queue.vertices import Vertices
from exporter.web.status import past as module
from exporter.web.status.past import Past, PastCache, PastReader

EVENT = Event(5.0, CAPPED, "noisy", None)
NOW_MS = 10_000_000


@dataclass
class Reads:
    """A slow reader that tells what it was asked, and finishes when it is let."""

    asked: list[tuple[frozenset[str], int]] = field(default_factory=list)
    under_way: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)
    now: float = 100.0

    async def read(self, _previous: Past, tags: Collection[str], now_ms: int) -> Past:
        self.asked.append((frozenset(tags), now_ms))
        self.under_way += 1
        try:
            await self.done.wait()
        finally:
            self.under_way -= 1
        return Past(events=(Event(float(len(self.asked)), CAPPED, "noisy", None),))


@pytest.fixture
def reads() -> Reads:
    return Reads()


async def test_nothing_is_read_until_somebody_looks(reads: Reads) -> None:
    cache = PastCache(reads.read, lambda: reads.now)
    await asyncio.sleep(0.01)
    await cache.close()
    assert reads.asked == []


async def test_a_quick_read_is_there_at_the_first_look(reads: Reads) -> None:
    reads.done.set()
    cache = PastCache(reads.read, lambda: reads.now)
    assert (await cache.look({"a"}, NOW_MS)).events is not None
    assert reads.asked == [(frozenset("a"), NOW_MS)]


async def test_a_slow_read_is_not_waited_for_and_is_there_later(reads: Reads) -> None:
    cache = PastCache(reads.read, lambda: reads.now)
    assert await cache.look((), NOW_MS) == Past()
    reads.done.set()
    assert (await cache.look((), NOW_MS)).events is not None
    await cache.close()


async def test_many_lookers_share_one_read_every_thirty_seconds(reads: Reads) -> None:
    cache = PastCache(reads.read, lambda: reads.now)
    await asyncio.gather(*(cache.look((), NOW_MS) for _ in range(20)))
    assert (len(reads.asked), reads.under_way) == (1, 1)
    reads.now += 31
    await cache.look((), NOW_MS)
    assert len(reads.asked) == 1, "one is still under way"
    reads.done.set()
    await cache.look((), NOW_MS)
    assert len(reads.asked) == 1
    await cache.look((), NOW_MS)
    assert len(reads.asked) == 2
    reads.now += 29
    await cache.look((), NOW_MS)
    assert len(reads.asked) == 2


async def test_the_end_cancels_the_read_under_way_and_none_begins_again(reads: Reads) -> None:
    cache = PastCache(reads.read, lambda: reads.now)
    await cache.look((), NOW_MS)
    assert reads.under_way == 1
    await cache.close()
    assert reads.under_way == 0
    reads.now += 60
    assert await cache.look((), NOW_MS) == Past()
    assert len(reads.asked) == 1


async def test_a_looker_that_hangs_up_does_not_take_the_read_with_it(reads: Reads) -> None:
    cache = PastCache(reads.read, lambda: reads.now)
    looker = asyncio.create_task(cache.look((), NOW_MS))
    await asyncio.sleep(0.01)
    looker.cancel()
    await asyncio.gather(looker, return_exceptions=True)
    assert reads.under_way == 1
    reads.done.set()
    assert (await cache.look((), NOW_MS)).events is not None


async def test_a_defect_costs_the_lines_and_not_the_page(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_previous: Past, _tags: Collection[str], _now_ms: int) -> Past:
        raise ZeroDivisionError

    cache = PastCache(fail)
    with caplog.at_level(logging.ERROR):
        past = await cache.look((), NOW_MS)
    assert past.lines is None
    assert [trouble.concerns for trouble in past.troubles] == [("this page",)]
    assert "ZeroDivisionError" in caplog.text


@dataclass
class Series:
    """A history that gives one line, or raises."""

    error: Exception | None = None
    asked: list[tuple[RequestedWindow, int, frozenset[Kind], frozenset[str]]] = field(default_factory=list)

    async def series(
        self, window: RequestedWindow, *, slots: int, kinds: Collection[Kind], tags: Collection[str] | None
    ) -> Drawn:
        self.asked.append((window, slots, frozenset(kinds), frozenset(tags or ())))
        if self.error is not None:
            raise self.error
        return Drawn(Window(0, 3_600, 60), (Line(Kind.COUNT, "a", Vertices([(0, 1.0), (60_000, 2.0)])),))


async def no_events() -> Sequence[Event]:
    return ()


async def one_event() -> Sequence[Event]:
    return (EVENT,)


async def denied() -> Sequence[Event]:
    raise MissingCapability("lacks privileges on public.audit: GRANT SELECT ON audit", reason="missing_privilege")


async def test_the_hour_before_the_database_s_time_is_read_for_the_shown_tags() -> None:
    series = Series()
    past = await PastReader(series, one_event).read(Past(), {"a", "b"}, NOW_MS)
    [(window, slots, kinds, tags)] = series.asked
    assert (window, slots) == (RequestedWindow(from_ms=NOW_MS - 3_600_000), module.SLOTS)
    assert kinds == {Kind.COUNT}
    assert tags == {"a", "b"}
    assert past.lines is not None
    assert past.lines["a"].peak == 2.0
    assert (past.events, past.troubles) == ((EVENT,), ())


async def test_without_tags_no_series_is_read() -> None:
    series = Series()
    past = await PastReader(series, no_events).read(Past(), (), NOW_MS)
    assert (series.asked, past.lines, past.events) == ([], None, ())


async def test_what_happened_stays_true_when_it_cannot_be_read_again() -> None:
    before = Past({}, (EVENT,))
    past = await PastReader(Series(), denied).read(before, {"a"}, NOW_MS)
    assert past.lines is not None
    assert past.events == (EVENT,)
    [trouble] = past.troubles
    assert (
        "the last transitions cannot be read: lacks privileges on public.audit: GRANT SELECT ON audit"
        in trouble.sentence
    )
    assert "as the owner" in trouble.advice


async def test_lines_that_cannot_be_read_are_gone_and_the_transitions_stay() -> None:
    error = DatabaseTimeout("no answer within 4 s", reason="deadline")
    past = await PastReader(Series(error), one_event).read(Past({}, ()), {"a"}, NOW_MS)
    assert (past.lines, past.events) == (None, (EVENT,))
    assert [trouble.sentence for trouble in past.troubles] == [
        "the lines of the last hour cannot be read: no answer within 4 s"
    ]


async def test_a_read_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never() -> Sequence[Event]:
        await asyncio.Event().wait()
        return ()

    monkeypatch.setattr(module, "READ_LIMIT_SECONDS", 0.05)
    past = await PastReader(Series(), never).read(Past(), {"a"}, NOW_MS)
    assert past.lines is not None
    assert [trouble.sentence for trouble in past.troubles] == [
        "the last transitions cannot be read: no answer within 0.05 s"
    ]
