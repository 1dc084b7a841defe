"""What the page shows of the past: read in the background while somebody looks, and never waited for.

Nobody looking means no load: a read begins with a request, at most one every 30 s and one at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final, Protocol, TypeVar

from exporter.errors import DatabaseError, DatabaseTimeout
from exporter.fairness.events import Event
from exporter.queue.history import Drawn, Kind, RequestedWindow
from exporter.web.status.advice import BY_REASON
from exporter.web.status.lines import sparklines
from exporter.web.status.values import Sparkline, Trouble

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

REFRESH_SECONDS: Final = 30.0
READ_LIMIT_SECONDS: Final = 10.0
# A page that waits this long still comes at once, and has its lines the first time where the database is well.
PATIENCE_SECONDS: Final = 0.08
SLOTS: Final = 60
HOUR_MS: Final = 3_600_000


class SeriesReader(Protocol):
    """`exporter.queue.history.History`, as far as the page needs it."""

    async def series(
        self, window: RequestedWindow, *, slots: int, kinds: Collection[Kind], tags: Collection[str] | None
    ) -> Drawn:
        """The drawn lines of a window."""


@dataclass(frozen=True, slots=True)
class Past:
    """The last read: the lines by tag, the newest events first (None: not known), and what went wrong."""

    lines: Mapping[str, Sparkline] | None = None
    events: tuple[Event, ...] | None = None
    troubles: tuple[Trouble, ...] = ()


class PastReader:
    """Reads both parts, one after the other; a failure of one leaves the other alone. Bounded to 10 s each."""

    def __init__(self, history: SeriesReader, events: Callable[[], Awaitable[Sequence[Event]]]) -> None:
        self._history = history
        self._events = events

    async def read(self, previous: Past, tags: Collection[str], now_ms: int) -> Past:
        """The lines of `tags` in the hour before `now_ms` (the database's), and the last transitions.

        What happened stays true when it cannot be read again; a line that ends somewhere in the past does not.
        """
        window = RequestedWindow(from_ms=now_ms - HOUR_MS)
        troubles: list[Trouble] = []
        lines = None
        if tags:
            series = self._history.series(window, slots=SLOTS, kinds=(Kind.COUNT,), tags=tags)
            lines = await _attempt("the lines of the last hour", series, troubles)
        events = await _attempt("the last transitions", self._events(), troubles)
        return Past(
            lines=None if lines is None else sparklines(lines),
            events=previous.events if events is None else tuple(events),
            troubles=tuple(troubles),
        )


class PastCache:
    """The last `Past`, renewed by one owned task. `read` gets the previous value, the tags and the database's time."""

    def __init__(
        self,
        read: Callable[[Past, Collection[str], int], Awaitable[Past]],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._read = read
        self._clock = clock
        self._past = Past()
        self._begun: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def look(self, tags: Collection[str], now_ms: int) -> Past:
        """The newest known past. Begins a read when the last one began 30 s ago; waits for one for under 0.1 s."""
        now = self._clock()
        idle = self._task is None or self._task.done()
        if idle and not self._closed and (self._begun is None or now - self._begun >= REFRESH_SECONDS):
            self._begun = now
            self._task = asyncio.create_task(self._refresh(tags, now_ms), name="status page: past")
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task}, timeout=PATIENCE_SECONDS)
        return self._past

    async def close(self) -> None:
        """End the read under way; none begins any more."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _refresh(self, tags: Collection[str], now_ms: int) -> None:
        try:
            self._past = await self._read(self._past, tags, now_ms)
        except Exception:  # a fault here must cost the lines, not the page
            logger.exception("status page: the past could not be read")
            trouble = Trouble(
                ("this page",), "The lines and transitions could not be read.", BY_REASON["statement_error"]
            )
            self._past = replace(self._past, lines=None, troubles=(trouble,))


async def _attempt(what: str, work: Awaitable[Answer], troubles: list[Trouble]) -> Answer | None:
    try:
        async with asyncio.timeout(READ_LIMIT_SECONDS):
            return await work
    except TimeoutError:
        error: DatabaseError = DatabaseTimeout(f"no answer within {READ_LIMIT_SECONDS:g} s", reason="deadline")
    except DatabaseError as failure:
        error = failure
    troubles.append(Trouble(("this page",), f"{what} cannot be read: {error}", BY_REASON.get(error.reason, "")))
    return None
