"""A window read from the database and drawn: the published cases, every kind of bad row, who waits for whom."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from exporter.database.database import Connection, Database
from exporter.errors import BadWindow
from exporter.queue.history import Drawn, History, Kind, RequestedWindow, draw_window
from exporter.queue.render import Window, render
from exporter.queue.samples import parse_value
from tests.queue.scene import HOSTILE_NAMES, add_sample
from tests.queue.series_scene import KINDS, lines_of, random_rows
from tests.queue.slots import Raw, insert_raw, slots_of
from tests.sources import CASES

PUBLISHED: list[dict[str, Any]] = json.loads((CASES / "render.json").read_text())
UNREADABLE = (
    "null",
    '"12"',
    '"NaN"',
    "true",
    "[]",
    "[1]",
    '["since"]',
    "{}",
    '{"since": null}',
    '{"since": "123"}',
    '{"since": {"since": 1}}',
    '{"since": [1]}',
    '{"other": 5}',
    '"since"',
    "1e400",
    "-1e400",
    '{"since": 1e400}',
    '{"value": 7, "Since": 1}',
)


async def draw(database: Database, window: Window, kinds: Sequence[Kind] = KINDS) -> Drawn:
    async with database.transaction("test") as transaction:
        return await draw_window(transaction, window, kinds, None)


async def test_the_published_cases_through_the_database(database: Database, windmill: Connection) -> None:
    """All of them are stored at once: no series disturbs another."""
    for case in PUBLISHED:
        rows = [Raw(at, json.dumps(value)) for at, value in case["samples"]]
        await insert_raw(windmill, Kind(case["kind"]).series_id(case["name"]), rows)
    for case in PUBLISHED:
        drawn = await draw(database, Window(case["from"], case["to"], case["slot_secs"]), [Kind(case["kind"])])
        vertices = next((list(line.vertices) for line in drawn.lines if line.tag == case["name"]), [])
        expected = [(time, value) for time, value in case["vertices"]]
        if all(value == 0 for _, value in expected):
            expected = []
        assert [time for time, _ in vertices] == [time for time, _ in expected], case["name"]
        assert [value for _, value in vertices] == pytest.approx([value for _, value in expected], abs=1e-9)


@pytest.mark.parametrize("seconds", [60.0, 3600.0, 86400.0])
async def test_the_statement_makes_the_slots_that_the_samples_say(
    database: Database, windmill: Connection, seconds: float
) -> None:
    source = random.Random(seconds)
    window = Window(1_700_000_000.0, 1_700_000_000.0 + seconds, seconds / 120)
    scenes = {f"scene {number}": random_rows(source, window) for number in range(60)}
    for name, rows in scenes.items():
        await insert_raw(windmill, Kind.DELAY.series_id(name), rows)
    drawn = {line.tag: list(line.vertices) for line in (await draw(database, window)).lines}
    for name, rows in scenes.items():
        expected = render(*slots_of(rows, window), window)
        found = drawn.get(name, [])
        if any(value for _, value in expected):
            assert [time for time, _ in found] == [time for time, _ in expected]
            assert [value for _, value in found] == pytest.approx([value for _, value in expected], abs=1e-6)
        else:
            assert found == []


async def test_unreadable_values_hurt_nobody(history: History, windmill: Connection) -> None:
    for number, text in enumerate(UNREADABLE):
        assert parse_value(text) is None, "the statement and the sampler agree"
        await add_sample(windmill, f"queue_count_bad {number}", text, 500)
        await add_sample(windmill, "queue_count_mixed", text, 500 - number)
    await add_sample(windmill, "queue_count_mixed", "4", 495)
    await add_sample(windmill, "queue_delay_climbs", '{"since": 1e9, "more": "x"}', 495)
    lines = await lines_of(history)
    assert set(lines) == {(Kind.COUNT, "mixed"), (Kind.DELAY, "climbs")}
    assert [value for _, value in lines[Kind.COUNT, "mixed"]] == [0.0, 4.0, 4.0]
    [stored, _] = await history.stored()
    assert list(stored.values) == [4.0]


@pytest.mark.parametrize(
    "text", ["1e308", "-1e308", "1e-400", '{"since": -1e308}', '{"since": 1e308}', "0." + "3" * 900]
)
async def test_numbers_at_the_edge_of_what_can_be_stored_are_no_error(
    history: History, windmill: Connection, text: str
) -> None:
    await add_sample(windmill, "queue_count_edge", text, 500)
    await add_sample(windmill, "queue_count_edge", '{"since": 1e308}', 499)
    await add_sample(windmill, "queue_count_edge", '{"since": -1e308}', 498)
    await add_sample(windmill, "queue_count_edge", "1", 497)
    lines = await lines_of(history)
    assert lines[Kind.COUNT, "edge"][-1][1] == 1.0
    rows = await history.grid(RequestedWindow(), None, Kind.COUNT, None)
    assert rows
    assert len((await history.stored())[0].values) == 4


@pytest.mark.parametrize("moment", ["'infinity'", "'-infinity'", "now() + interval '1 day'", "'294000-01-01'"])
async def test_rows_in_the_future_or_at_infinity_change_nothing(
    history: History, windmill: Connection, moment: str
) -> None:
    await add_sample(windmill, "queue_count_a", "4", 495)
    await add_sample(windmill, "queue_delay_a", '{"since": 1e9}', 495)
    before = await lines_of(history)
    for value in ("7", '{"since": 1e9}'):
        await windmill.execute(
            f"INSERT INTO metrics (id, value, created_at) VALUES ('queue_count_a', '{value}', {moment}),"
            f" ('queue_delay_a', '{value}', {moment}), ('queue_delay_only', '{value}', {moment})"
        )
    after = await lines_of(history)
    assert set(after) == set(before)
    assert [after[key][:2] for key in after] == [before[key][:2] for key in before]
    assert len(await history.stored()) == 2
    assert {row.tag for row in await history.grid(RequestedWindow(), None, Kind.COUNT, None)} == {"a"}


async def test_only_the_two_prefixes_count_whatever_an_underscore_matches(
    history: History, windmill: Connection
) -> None:
    for series_id in ("queueXcount_a", "queue_countXa", "queue_other_a", "queue_", "queue_count_", "other"):
        await add_sample(windmill, series_id, "4", 100)
    assert set(await lines_of(history)) == {(Kind.COUNT, "")}
    assert set(await lines_of(history, kinds=(Kind.COUNT,))) == {(Kind.COUNT, "")}
    assert await history.tags() == ("",)
    assert [one.id for one in await history.stored()] == ["queue_count_"]


async def test_hostile_tags_are_read_and_asked_for(history: History, windmill: Connection) -> None:
    for tag in HOSTILE_NAMES:
        await add_sample(windmill, f"queue_count_{tag}", "4", 100)
    expected = sorted(HOSTILE_NAMES)
    assert [tag for _, tag in await lines_of(history)] == expected, "in code point order"
    assert await history.tags() == tuple(expected)
    for tag in HOSTILE_NAMES:
        assert [found for _, found in await lines_of(history, tags=[tag])] == [tag]
    asked = [*HOSTILE_NAMES, "'); DROP TABLE metrics; --", "$1", "{schema}", "\0", "\ud800", "x" * 1000]
    assert [tag for _, tag in await lines_of(history, tags=asked)] == expected


async def test_kinds_and_tags_narrow_and_nothing_asked_is_nothing_drawn(history: History, windmill: Connection) -> None:
    for series_id in ("queue_count_a", "queue_delay_a", "queue_count_b"):
        await add_sample(windmill, series_id, "4", 100)
    assert set(await lines_of(history, kinds=[Kind.DELAY])) == {(Kind.DELAY, "a")}
    assert set(await lines_of(history, tags=["b", "unknown"])) == {(Kind.COUNT, "b")}
    assert await lines_of(history, tags=[]) == {}
    assert await lines_of(history, kinds=[]) == {}
    assert await lines_of(history, tags=["unknown"]) == {}


async def test_a_tag_is_left_out_only_when_all_that_was_asked_for_is_zero(
    history: History, windmill: Connection
) -> None:
    for series_id, value in (("count_a", "4"), ("delay_a", "0"), ("count_b", "0"), ("delay_b", "0")):
        await add_sample(windmill, f"queue_{series_id}", value, 100)
    assert set(await lines_of(history)) == {(Kind.COUNT, "a"), (Kind.DELAY, "a")}
    assert await lines_of(history, kinds=[Kind.DELAY]) == {}


async def test_every_vertex_lies_in_the_window(history: History, windmill: Connection) -> None:
    for age in range(0, 3000, 7):
        await add_sample(windmill, "queue_delay_a", '{"since": 1e9}', age)
    drawn = await history.series(RequestedWindow(length_ms=1_000_000), slots=20, kinds=KINDS, tags=None)
    assert drawn.window.to_ms - drawn.window.from_ms == 1_000_000
    [line] = drawn.lines
    times = [time for time, _ in line.vertices]
    assert times == sorted(times)
    assert times[0] == drawn.window.from_ms
    assert times[-1] == drawn.window.to_ms
    assert line.vertices.peak == max(value for _, value in line.vertices)


async def test_a_window_that_is_none_is_an_error_by_name(history: History) -> None:
    with pytest.raises(BadWindow, match=r"^from: "):
        await lines_of(history, window=RequestedWindow(from_ms=5, to_ms=5))
