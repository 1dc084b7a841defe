"""The newest readable sample of every series, on real PostgreSQL."""

from __future__ import annotations

import pytest

from exporter.database.database import Connection, Database
from exporter.queue.samples import Climbing, Held, Kind, parse_value
from exporter.queue.statements import LAST_SAMPLES, READ_PLANNER
from tests.queue.plans import indexes, plan_of, scans, touched_blocks
from tests.queue.scene import HOSTILE_NAMES, add_sample, recent_of

READABLE = [
    "0",
    "-1",
    "2.5",
    "1e-400",
    "1e300",
    "179769313486231570e291",
    '{"since": 1700000000.123456}',
    '{"since": -1e-400}',
]
UNREADABLE = [
    "null",
    "true",
    '"5"',
    "[]",
    "[1]",
    "{}",
    '{"since": null}',
    '{"since": "123"}',
    '{"since": [1]}',
    '{"since": {"since": 1}}',
    "1e400",
    "-1e400",
    '{"since": 1e400}',
    "1" + "0" * 5000,
]


async def test_the_newest_sample_of_each_series_is_found(database: Database, windmill: Connection) -> None:
    for age, value in [(600, "1"), (30, "2"), (31, "3")]:
        await add_sample(windmill, "queue_count_deno", value, age)
    await add_sample(windmill, "queue_delay_deno", '{"since": 1700000000.000001}', 500)
    recent = await recent_of(database)
    assert {key: sample.value for key, sample in recent.last.items()} == {
        (Kind.COUNT, "deno"): Held(2),
        (Kind.DELAY, "deno"): Climbing(1700000000.000001),
    }
    stored_at = await windmill.fetchval("SELECT date_part('epoch', max(created_at)) FROM metrics")
    assert recent.last[Kind.COUNT, "deno"].at == stored_at


async def test_only_the_last_900_s_up_to_now_count(database: Database, windmill: Connection) -> None:
    for tag, age in [("in", 899), ("out", 901), ("ahead", -60)]:
        await add_sample(windmill, f"queue_count_{tag}", "1", age)
    for moment in ("infinity", "-infinity"):
        await windmill.execute(
            "INSERT INTO metrics (id, value, created_at) VALUES ('queue_count_in', '7', $1::text::timestamptz)", moment
        )
    recent = await recent_of(database)
    assert {key: sample.value for key, sample in recent.last.items()} == {(Kind.COUNT, "in"): Held(1)}
    assert recent.unreadable == 0


@pytest.mark.parametrize("text", READABLE)
async def test_what_the_rules_can_read_is_found(text: str, database: Database, windmill: Connection) -> None:
    await add_sample(windmill, "queue_count_deno", text, 10)
    recent = await recent_of(database)
    assert recent.last[Kind.COUNT, "deno"].value == parse_value(text)
    assert recent.unreadable == 0


@pytest.mark.parametrize("text", UNREADABLE)
async def test_an_unreadable_row_is_passed_over_and_counted(
    text: str, database: Database, windmill: Connection
) -> None:
    assert parse_value(text) is None
    await add_sample(windmill, "queue_count_deno", "4", 20)
    await add_sample(windmill, "queue_count_deno", text, 10)
    await add_sample(windmill, "queue_delay_other", text, 10)
    recent = await recent_of(database)
    assert {key: sample.value for key, sample in recent.last.items()} == {(Kind.COUNT, "deno"): Held(4)}
    assert recent.unreadable == 2


async def test_unreadable_rows_are_counted_once(database: Database, windmill: Connection) -> None:
    await add_sample(windmill, "queue_count_deno", "null", 10)
    counted_until = await windmill.fetchval("SELECT date_part('epoch', created_at) FROM metrics")
    await add_sample(windmill, "queue_count_deno", "null", 5)
    assert (await recent_of(database, counted_until - 1)).unreadable == 2
    assert (await recent_of(database, counted_until)).unreadable == 1
    assert (await recent_of(database, counted_until + 100)).unreadable == 0
    assert (await recent_of(database, 1e300)).unreadable == 0


async def test_ids_that_only_look_like_ours_are_left_alone(database: Database, windmill: Connection) -> None:
    for series_id in ("queueXcount_deno", "queue_other_deno", "queue_counts", "queue", "Queue_count_x", "other"):
        await add_sample(windmill, series_id, "null", 10)
        await add_sample(windmill, series_id, "5", 20)
    recent = await recent_of(database)
    assert (recent.last, recent.unreadable) == ({}, 0)


async def test_of_drained_series_only_the_newest_are_sent(database: Database, windmill: Connection) -> None:
    """Tags that come and go by the thousand must not make every reading larger for 900 s."""
    for number in range(6):
        await add_sample(windmill, f"queue_count_drained {number}", "0", 100 + number)
        await add_sample(windmill, f"queue_count_just drained {number}", "0.0", 1 + number)
        await add_sample(windmill, f"queue_count_waiting {number}", "1", 800 + number)
        await add_sample(windmill, f"queue_delay_climbing {number}", '{"since": 0}', 800 + number)
    tags = {tag for _, tag in (await recent_of(database, drained_series=8)).last}
    assert tags == {
        *(f"{what} {number}" for what in ("just drained", "waiting", "climbing") for number in range(6)),
        "drained 0",
        "drained 1",
    }
    tags = {tag for _, tag in (await recent_of(database, drained_series=0)).last}
    assert "just drained 5" in tags
    assert "drained 0" not in tags


async def test_hostile_tags_keep_their_names(database: Database, windmill: Connection) -> None:
    for name in HOSTILE_NAMES:
        await add_sample(windmill, f"queue_count_{name}", "1", 10)
    await add_sample(windmill, "queue_delay_", "1", 10)
    recent = await recent_of(database)
    assert set(recent.last) == {(Kind.COUNT, name) for name in HOSTILE_NAMES} | {(Kind.DELAY, "")}


async def test_at_equal_times_a_climb_wins_and_then_the_highest_value(database: Database, windmill: Connection) -> None:
    await windmill.execute(
        """
        INSERT INTO metrics (id, value, created_at)
        SELECT id, value::jsonb, now() - interval '10 seconds'
          FROM (VALUES ('queue_count_a', '1'), ('queue_count_a', '10'), ('queue_count_a', '9'),
                       ('queue_delay_a', '500'), ('queue_delay_a', '{"since": 7}')) AS rows (id, value)
        """
    )
    recent = await recent_of(database)
    assert recent.last[Kind.COUNT, "a"].value == Held(10)
    assert recent.last[Kind.DELAY, "a"].value == Climbing(7)


@pytest.mark.parametrize("analyzed", ["never", "now", "long ago"])
async def test_only_900_s_of_a_large_table_are_read(analyzed: str, database: Database, windmill: Connection) -> None:
    """700,000 rows of others and 100,000 of ours, two weeks long: by time and index, whatever the statistics say."""
    await windmill.execute("ALTER TABLE metrics SET (autovacuum_enabled = off)")
    fill = """
        INSERT INTO metrics (id, value, created_at)
        SELECT CASE WHEN n % 8 = 0 THEN 'queue_count_tag ' || n % 50 ELSE 'other_' || n % 100 END, to_jsonb(n),
               now() - interval '14 days' + n * interval '14 days' / 800000
          FROM generate_series($1::int, $2::int) AS n
        """
    await windmill.execute(fill, 1, 400_000)
    if analyzed == "long ago":
        await windmill.execute("ANALYZE metrics")
    await windmill.execute(fill, 400_001, 800_000)
    if analyzed == "now":
        await windmill.execute("ANALYZE metrics")
    nodes = await plan_of(windmill, LAST_SAMPLES, None, 4000, planner=READ_PLANNER)
    assert "Seq Scan" not in {how for how, _ in scans(nodes, "metrics")}
    assert indexes(nodes) == {"metrics_sort_idx"}
    assert touched_blocks(nodes) < 100
    assert len((await recent_of(database)).last) == 25
