"""A reading is bounded, says what drained, and survives the row in which the fleet shares it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.database.database import Connection
from exporter.queue.reading import (
    WholeQueue,
    bounded,
    build_reading,
    drained_tags,
    is_fresh,
    parse_reading,
    remember,
)
from exporter.queue.values import QueueReading, TagReading, WorkspaceWait
from tests.queue.scene import HOSTILE_NAMES

NOW = 1_700_000_000.123456
names = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=255)
times = st.integers(0, 2 * 10**15).map(lambda micros: micros / 1e6)
counts = st.integers(0, 2**63 - 1)


@st.composite
def tag_readings(draw: st.DrawFn) -> TagReading:
    waiting = draw(counts)
    return TagReading(draw(names), waiting, draw(times) if waiting else None, draw(counts), draw(counts))


@st.composite
def readings(draw: st.DrawFn) -> QueueReading:
    tags = draw(st.lists(tag_readings(), max_size=5, unique_by=lambda one: one.tag))
    drained = draw(st.lists(names, max_size=5, unique=True))
    workspaces = st.lists(
        st.builds(WorkspaceWait, names, counts, times), max_size=5, unique_by=lambda one: one.workspace
    )
    return QueueReading(
        read_at=draw(times),
        by=draw(names),
        tags=tuple(tags),
        workspaces=tuple(draw(workspaces)),
        drained=tuple(tag for tag in drained if tag not in {one.tag for one in tags}),
        other_tags=draw(counts),
        other_waiting=draw(counts),
        other_running=draw(counts),
        other_workspaces=draw(counts),
    )


def waiting(tag: str, number: int, running: int = 0) -> TagReading:
    return TagReading(tag, number, NOW - 10 if number else None, running, 1)


def queue(*tags: TagReading) -> WholeQueue:
    return WholeQueue(NOW, tags, ())


SAMPLE = QueueReading(
    NOW, "replica-a", (waiting("deno", 3), waiting("gpu", 0, 1)), (WorkspaceWait("demo", 3, NOW - 20),), ("gone",)
)


@given(readings())
def test_a_reading_comes_back_as_it_was_stored(reading: QueueReading) -> None:
    assert parse_reading(build_reading(reading)) == reading


async def test_a_reading_comes_back_from_the_database_as_it_was_stored(windmill: Connection) -> None:
    reading = replace(
        SAMPLE,
        tags=tuple(waiting(name, number) for number, name in enumerate(HOSTILE_NAMES, 1)),
        workspaces=tuple(WorkspaceWait(name, 1, NOW - 0.000001) for name in HOSTILE_NAMES),
        drained=tuple(f"gone {name}"[:255] for name in HOSTILE_NAMES),
    )
    text = await windmill.fetchval("SELECT $1::text::jsonb::text", build_reading(reading))
    assert parse_reading(text) == reading


@given(readings(), st.data())
def test_a_stored_reading_with_any_part_replaced_never_raises(reading: QueueReading, data: st.DataObject) -> None:
    stored = json.loads(build_reading(reading))
    junk = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    )
    stored[data.draw(st.sampled_from(sorted(stored)))] = data.draw(junk)
    parsed = parse_reading(json.dumps(stored))
    assert parsed is None or len({one.tag for one in parsed.tags}) == len(parsed.tags)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "null",
        "[]",
        '{"version":1}',
        build_reading(SAMPLE).replace('"version":1', '"version":2'),
        build_reading(SAMPLE).replace('"version":1,', ""),
        build_reading(SAMPLE).replace("1700000000.123456", "1e300"),
        build_reading(SAMPLE).replace("1700000000.123456", "-1"),
        build_reading(SAMPLE).replace('"at":', '"at":9e999,"was":'),
        build_reading(SAMPLE).replace('["deno",3', '["deno",-3'),
        build_reading(SAMPLE).replace('["deno",3', '["deno",3.5'),
        build_reading(SAMPLE).replace('["deno",3', f'["deno",{2**63}'),
        build_reading(SAMPLE).replace('["deno",3', '["deno",0'),
        build_reading(SAMPLE).replace('["gpu",0', '["gpu",1'),
        build_reading(SAMPLE).replace("deno", "gpu"),
        build_reading(SAMPLE).replace("gone", "deno"),
        build_reading(SAMPLE).replace("deno", "x" * 256),
        build_reading(SAMPLE).replace("deno", "\\ud800"),
        build_reading(SAMPLE).replace("}", ',"deep":' + "[" * 100_000 + "]" * 100_000 + "}"),
        build_reading(replace(SAMPLE, drained=tuple(map(str, range(10_001))))),
    ],
)
def test_what_this_version_did_not_write_is_no_reading(text: str | None) -> None:
    assert parse_reading(build_reading(SAMPLE)) == SAMPLE
    assert parse_reading(text) is None


def test_the_largest_backlogs_are_kept_and_the_rest_is_summed_up() -> None:
    tags = [waiting(f"small {number}", 1, running=2) for number in range(100)] + [waiting("large", 1000)]
    reading = bounded(queue(*tags), by="me", known=(), drained=(), limit=10)
    assert reading.tags[0].tag == "large"
    assert len(reading.tags) == 10
    assert (reading.other_tags, reading.other_waiting, reading.other_running) == (91, 91, 182)


def test_among_equal_backlogs_tags_stored_lately_are_kept() -> None:
    tags = [waiting(f"tag {number}", 1) for number in range(100)]
    reading = bounded(queue(*tags), by="me", known={"tag 98", "tag 57"}, drained=(), limit=2)
    assert {one.tag for one in reading.tags} == {"tag 98", "tag 57"}


def test_workspaces_are_bounded_too() -> None:
    whole = WholeQueue(NOW, (), tuple(WorkspaceWait(f"ws {number}", number, NOW) for number in range(1, 51)))
    reading = bounded(whole, by="me", known=(), drained=(), limit=20)
    assert [one.waiting for one in reading.workspaces] == list(range(50, 30, -1))
    assert reading.other_workspaces == 30


def test_a_tag_drains_for_900_s_after_its_last_backlog() -> None:
    backlog_at = {"old": NOW - 900, "just": NOW - 899.9, "new": NOW - 1, "present": NOW - 1, "busy": NOW - 1}
    whole = queue(waiting("present", 1), waiting("busy", 0, running=1))
    assert drained_tags(whole, backlog_at, 10) == ("new", "just")
    assert drained_tags(whole, backlog_at, 1) == ("new",)


def test_what_is_remembered_of_backlogs_is_bounded_in_time_and_number() -> None:
    reading = bounded(queue(waiting("a", 1), waiting("idle", 0, 1)), by="", known=(), drained=(), limit=10)
    before = {"old": NOW - 900, "recent": NOW - 100, "later": NOW - 50}
    assert remember(before, reading, 10) == {"a": NOW, "later": NOW - 50, "recent": NOW - 100}
    assert remember(before, reading, 2) == {"a": NOW, "later": NOW - 50}


def test_a_reading_is_fresh_for_its_limit_and_never_from_the_future() -> None:
    assert is_fresh(SAMPLE, NOW + 10, 10)
    assert is_fresh(SAMPLE, NOW - 0.5, 10)
    assert not is_fresh(SAMPLE, NOW + 10.1, 10)
    assert not is_fresh(SAMPLE, NOW - 2, 10)
