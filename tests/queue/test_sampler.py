"""One replica's ticks on real PostgreSQL: what it stores, what it shares, and what it never does."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import asyncpg
import pytest

from exporter.config import QueueConfig
from exporter.database.capabilities import Requirement
from exporter.database.database import Connection, Database
from exporter.errors import DatabaseError
from exporter.queue.reading import parse_reading
from exporter.queue.sampler import OBSERVE_REQUIREMENTS, SAMPLE_REQUIREMENTS, Sampler
from exporter.queue.values import QueueMode
from tests.queue.scene import (
    HOSTILE_NAMES,
    Job,
    add_jobs,
    add_sample,
    add_worker,
    age_everything,
    count_rows,
    database_at,
    reading_of,
    results_of,
    sampler_of,
    stored_rows,
    transaction_ids_used,
)

ROW = "windmill_exporter_queue"


async def test_a_backlog_is_stored_at_once_with_the_heads_exact_start(database: Database, windmill: Connection) -> None:
    await add_jobs(windmill, Job(due=61.234567), Job(due=20))
    outcome = await sampler_of(database).tick()
    assert results_of(outcome) == {"stored": 2}
    rows = await windmill.fetch("SELECT id, jsonb_typeof(value) AS kind, value::text AS value FROM metrics")
    values = {row["id"]: json.loads(row["value"]) for row in rows}
    assert values["queue_count_deno"] == 2
    assert {row["kind"] for row in rows} == {"number"}
    exact = await windmill.fetchval(
        """
        SELECT extract(epoch FROM created_at) - value::numeric
             = (SELECT extract(epoch FROM min(scheduled_for)) FROM v2_job_queue)
          FROM metrics WHERE id = 'queue_delay_deno'
        """
    )
    assert exact is True


async def test_a_head_that_stays_is_stored_climbing_with_microseconds(database: Database, windmill: Connection) -> None:
    sampler = sampler_of(database)
    await add_jobs(windmill, Job(due=10.000001))
    await sampler.tick()
    await age_everything(windmill, 30)
    assert results_of(await sampler.tick()) == {"stored": 1, "unchanged": 1}
    [(_, first), (_, second)] = await stored_rows(windmill, "queue_delay_deno")
    head = await windmill.fetchval("SELECT extract(epoch FROM scheduled_for)::text FROM v2_job_queue")
    assert float(first) == pytest.approx(10, abs=1)
    assert second == f'{{"since": {head}}}'
    assert "e" not in second.removeprefix('{"since"')


async def test_a_drain_is_written_once(database: Database, windmill: Connection) -> None:
    sampler = sampler_of(database)
    await add_jobs(windmill, Job())
    await sampler.tick()
    await windmill.execute("DELETE FROM v2_job_queue")
    for _ in range(4):
        await age_everything(windmill, 20)
        outcome = await sampler.tick()
        assert reading_of(outcome).drained == ("deno",)
    rows = await stored_rows(windmill, "queue_count_%")
    assert rows == [("queue_count_deno", "1"), ("queue_count_deno", "0")]
    assert (await stored_rows(windmill, "queue_delay_%"))[-1] == ("queue_delay_deno", "0")
    assert await count_rows(windmill) == 4


async def test_a_drained_tag_is_shown_for_900_s_and_then_gone(database: Database, windmill: Connection) -> None:
    """Field case F74: also without any stored row, from what this process saw."""
    await add_jobs(windmill, Job())
    sampler = sampler_of(database, mode="observe")
    assert reading_of(await sampler.tick()).drained == ()
    await windmill.execute("DELETE FROM v2_job_queue")
    assert reading_of(await sampler.tick()).drained == ("deno",)
    assert reading_of(await sampler_of(database, mode="observe").tick()).drained == ()
    await add_sample(windmill, "queue_delay_stored", "0", 899)
    await add_sample(windmill, "queue_delay_too_old", "0", 901)
    assert reading_of(await sampler_of(database, mode="observe").tick()).drained == ("stored",)


async def test_rows_of_other_samplers_in_one_series_count_like_ours(database: Database, windmill: Connection) -> None:
    """Windmill's own rows, of every age of its sampler, decide as ours do: only what is stored matters."""
    await add_jobs(windmill, Job(tag="recent"), Job(tag="plain"), Job(tag="climbing"), Job(tag="broken"))
    for age in (70, 45, 20):
        await add_sample(windmill, "queue_count_recent", "9", age)
        await add_sample(windmill, "queue_delay_recent", "1", age)
    await add_sample(windmill, "queue_count_plain", "1", 30)
    await add_sample(windmill, "queue_delay_plain", "300", 30)
    head = await windmill.fetchval("SELECT date_part('epoch', scheduled_for) FROM v2_job_queue WHERE tag = 'climbing'")
    await add_sample(windmill, "queue_delay_climbing", json.dumps({"since": head}), 30)
    await add_sample(windmill, "queue_count_broken", '"many"', 5)
    outcome = await sampler_of(database).tick()
    new = await windmill.fetch("SELECT id FROM metrics WHERE created_at > now() - interval '4 seconds' ORDER BY id")
    assert [row["id"] for row in new] == [
        "queue_count_broken",
        "queue_count_climbing",
        "queue_delay_broken",
        "queue_delay_plain",
    ]
    assert outcome.unreadable_samples == 1


async def test_unreadable_rows_are_counted_once_by_the_fleet(database: Database, windmill: Connection) -> None:
    await add_sample(windmill, "queue_count_deno", "null", 100)
    assert (await sampler_of(database).tick()).unreadable_samples == 1
    await age_everything(windmill, 10)
    assert (await sampler_of(database, "replica-b").tick()).unreadable_samples == 0
    await age_everything(windmill, 10)
    await add_sample(windmill, "queue_count_deno", "null", 1)
    assert (await sampler_of(database, "replica-c").tick()).unreadable_samples == 1


async def test_an_observer_counts_unreadable_rows_once(database: Database, windmill: Connection) -> None:
    observer = sampler_of(database, mode="observe")
    await add_sample(windmill, "queue_count_deno", "null", 1)
    assert [(await observer.tick()).unreadable_samples for _ in range(2)] == [1, 0]
    await add_sample(windmill, "queue_count_deno", "null", 0)
    assert [(await observer.tick()).unreadable_samples for _ in range(2)] == [1, 0]


async def test_a_tag_too_long_for_the_column_fails_nobody_and_is_still_shown(
    database: Database, windmill: Connection
) -> None:
    await add_jobs(windmill, Job(tag="x" * 244), Job(tag="é" * 243))
    outcome = await sampler_of(database).tick()
    assert results_of(outcome) == {"stored": 2, "skipped_long_tag": 2}
    assert outcome.skipped_tags == ("x" * 244,)
    assert {one.tag for one in reading_of(outcome).tags} == {"x" * 244, "é" * 243}
    assert [series_id for series_id, _ in await stored_rows(windmill)] == [
        "queue_count_" + "é" * 243,
        "queue_delay_" + "é" * 243,
    ]


async def test_hostile_tags_are_stored_and_shared_as_they_are(database: Database, windmill: Connection) -> None:
    await add_jobs(windmill, *(Job(tag=name, workspace=name[:50]) for name in HOSTILE_NAMES))
    own = await sampler_of(database).tick()
    ids = {series_id for series_id, _ in await stored_rows(windmill)}
    assert ids == {f"queue_{kind}_{name}" for kind in ("count", "delay") for name in HOSTILE_NAMES}
    shared = await sampler_of(database, "replica-b").tick()
    assert reading_of(shared) == reading_of(own)
    assert shared.samples == ()


async def test_twenty_thousand_tags_are_bounded(database: Database, windmill: Connection) -> None:
    """Field case F80: twice, with other tags; the large ones are always there, and nothing grows."""
    sampler = sampler_of(database)
    for round_ in range(2):
        await windmill.execute("TRUNCATE v2_job_queue CASCADE")
        await windmill.execute(
            "INSERT INTO v2_job_queue (id, workspace_id, scheduled_for, tag)"
            " SELECT gen_random_uuid(), 'ws ' || n, now() - interval '1 minute', $1 || n"
            "   FROM generate_series(1, 20000) AS n",
            f"round {round_} tag ",
        )
        await add_jobs(windmill, *(Job(tag=f"large {number}") for number in range(5)), number=20)
        outcome = await sampler.tick()
        reading = reading_of(outcome)
        assert {one.tag for one in reading.tags[:5]} == {f"large {number}" for number in range(5)}
        assert (len(reading.tags), len(reading.workspaces)) == (2000, 2000)
        assert (reading.other_tags, reading.other_waiting, reading.other_workspaces) == (18_005, 18_005, 18_001)
        assert len(reading.drained) == (1995 if round_ else 0)
        assert results_of(outcome)["skipped_over_limit"] == 36_010
        assert reading_of(await sampler_of(database, "replica-b").tick()) == reading
        await age_everything(windmill, 10)
    # Both rounds' tags, the drains of the first, and nothing for the large ones, stored 10 s before.
    assert await count_rows(windmill) == 4000 + 2 * 1995 + 2 * 1995


async def test_one_replica_alone_never_skips_a_cycle_for_a_little_jitter(
    database: Database, windmill: Connection
) -> None:
    sampler = sampler_of(database)
    await sampler.tick()
    for waited, reads in [(9.5, True), (9.5, True), (8.0, False)]:
        await age_everything(windmill, waited)
        before = await windmill.fetchval("SELECT updated_at FROM background_task_state WHERE name = $1", ROW)
        await sampler.tick()
        after = await windmill.fetchval("SELECT updated_at FROM background_task_state WHERE name = $1", ROW)
        assert (after != before) is reads


@pytest.mark.parametrize("moment", ["infinity", "-infinity", "2999-01-01"])
async def test_an_impossible_claim_is_taken_over(moment: str, database: Database, windmill: Connection) -> None:
    await windmill.execute(
        "INSERT INTO background_task_state (name, value, updated_at) VALUES ($1, '{}', $2::text::timestamptz)",
        ROW,
        moment,
    )
    await add_jobs(windmill, Job())
    assert results_of(await sampler_of(database).tick()) == {"stored": 2}


@pytest.mark.parametrize(
    "value",
    ["null", "[]", '"x"', '{"version": 2}', '{"version": 1, "at": 1e400}', '{"at": "x", "version": 1}', "1e400"],
)
async def test_a_row_of_a_stranger_is_no_reading_and_is_written_over(
    value: str, database: Database, windmill: Connection
) -> None:
    await windmill.execute(
        "INSERT INTO background_task_state (name, value, updated_at) VALUES ($1, $2::text::jsonb, now())", ROW, value
    )
    await add_jobs(windmill, Job())
    sampler = sampler_of(database)
    assert (await sampler.tick()).snapshot is None
    await windmill.execute("UPDATE background_task_state SET updated_at = 'epoch'")
    await sampler.tick()
    stored = parse_reading(await windmill.fetchval("SELECT value::text FROM background_task_state"))
    assert stored is not None
    assert stored.by == "replica-a"


async def test_a_shared_reading_keeps_its_age(database: Database, windmill: Connection) -> None:
    """What `metrics.freshness` ages it by: a reading that nobody renews goes stale, whatever the clocks."""
    await add_jobs(windmill, Job())
    await sampler_of(database).tick()
    await windmill.execute(
        "UPDATE background_task_state SET value = jsonb_set(value, '{at}', to_jsonb((value ->> 'at')::numeric - 500))"
    )
    config = QueueConfig(mode=QueueMode.SAMPLE)
    outcome = await Sampler(database, config, "replica-b", monotonic=lambda: 7.0).tick()
    assert outcome.snapshot is not None
    assert outcome.snapshot.observed_monotonic == 7.0
    assert outcome.snapshot.now - outcome.snapshot.reading.read_at == pytest.approx(500, abs=5)
    assert outcome.snapshot.now == pytest.approx(outcome.snapshot.reading.read_at + 500, abs=5)


@pytest.mark.parametrize("shift", [-240.0, 240.0, 365 * 86_400.0])
async def test_nothing_depends_on_the_local_clock(
    shift: float, database: Database, windmill: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field case F58."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + shift)
    await add_jobs(windmill, Job(due=100))
    sampler = sampler_of(database)
    outcome = await sampler.tick()
    [tag] = reading_of(outcome).tags
    assert outcome.snapshot is not None
    assert tag.head_since is not None
    assert outcome.snapshot.now - tag.head_since == pytest.approx(100, abs=2)
    await age_everything(windmill, 30)
    await sampler.tick()
    right = await windmill.fetchval(
        "SELECT (value ->> 'since')::numeric = (SELECT extract(epoch FROM scheduled_for) FROM v2_job_queue)"
        "  FROM metrics WHERE jsonb_typeof(value) = 'object'"
    )
    assert right is True


async def test_values_are_json_also_on_new_connections(
    database: Database, windmill: Connection, windmill_url: str
) -> None:
    """Field case F94: after every backend was ended, one tick fails at the most, and nothing is encoded twice."""
    await add_jobs(windmill, Job())
    sampler = sampler_of(database)
    await sampler.tick()
    await windmill.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    await age_everything(windmill, 30)
    with suppress(DatabaseError):
        await sampler.tick()
    await sampler.tick()
    kinds = await windmill.fetch("SELECT DISTINCT jsonb_typeof(value) AS kind FROM metrics")
    assert {row["kind"] for row in kinds} == {"number", "object"}


async def test_a_failed_read_is_no_drain(database: Database, windmill: Connection) -> None:
    """Field case F32: what cannot be read is a failure, and nothing is written."""
    await add_jobs(windmill, Job())
    sampler = sampler_of(database)
    await sampler.tick()
    await age_everything(windmill, 60)
    await windmill.execute("ALTER TABLE v2_job_queue RENAME COLUMN priority TO urgency")
    with pytest.raises(DatabaseError) as caught:
        await sampler.tick()
    assert caught.value.reason == "missing_column"
    assert await count_rows(windmill) == 2


async def _snapshot_of_tables(connection: Connection) -> list[asyncpg.Record]:
    return await connection.fetch(
        "SELECT xmin::text, ctid::text, name AS id FROM background_task_state"
        " UNION ALL SELECT xmin::text, ctid::text, id FROM metrics"
    )


async def test_observing_never_writes(windmill: Connection, windmill_url: str) -> None:
    """Under a role that may only read, with and without another replica's reading; no transaction id is taken."""
    await windmill.execute(
        """
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'queue_observer') THEN
                CREATE ROLE queue_observer LOGIN;
            END IF;
        END $$
        """
    )
    for requirement in OBSERVE_REQUIREMENTS:
        columns = ", ".join(requirement.select)
        await windmill.execute(f"GRANT SELECT ({columns}) ON {requirement.relation} TO queue_observer")
    await add_jobs(windmill, Job(), Job(running=True, tag="gpu"))
    await add_worker(windmill, "one", ["deno"])
    await add_sample(windmill, "queue_count_gone", "1", 30)
    observing = database_at(windmill_url.replace("postgres@", "queue_observer@"))
    sampler = sampler_of(observing, "observer", mode="observe")
    before = await _snapshot_of_tables(windmill)
    outcome = await sampler.tick()
    assert {(one.tag, one.waiting, one.running, one.workers) for one in reading_of(outcome).tags} == {
        ("deno", 1, 0, 1),
        ("gpu", 0, 1, 0),
    }
    assert reading_of(outcome).drained == ("gone",)
    assert outcome.samples == ()
    assert await transaction_ids_used(windmill, sampler.tick) == 0
    assert await _snapshot_of_tables(windmill) == before
    with pytest.raises(DatabaseError):
        await sampler_of(observing, "observer", mode="sample").tick()
    observing.close()


async def test_sampling_needs_exactly_what_it_declares(windmill: Connection, windmill_url: str) -> None:
    await windmill.execute(
        """
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'queue_sampler') THEN
                CREATE ROLE queue_sampler LOGIN;
            END IF;
        END $$
        """
    )
    for requirement in SAMPLE_REQUIREMENTS:
        await _grant(windmill, requirement, "queue_sampler")
    await add_jobs(windmill, Job())
    sampling = database_at(windmill_url.replace("postgres@", "queue_sampler@"))
    assert results_of(await sampler_of(sampling).tick()) == {"stored": 2}
    sampling.close()


async def _grant(connection: Connection, requirement: Requirement, role: str) -> None:
    for verb in ("select", "insert", "update"):
        columns = getattr(requirement, verb)
        if columns:
            await connection.execute(f"GRANT {verb} ({', '.join(columns)}) ON {requirement.relation} TO {role}")


async def test_an_observer_shows_a_fresh_reading_of_another_replica(database: Database, windmill: Connection) -> None:
    await add_jobs(windmill, Job())
    shared = reading_of(await sampler_of(database).tick())
    await add_jobs(windmill, Job())
    observer = sampler_of(database, "observer", mode="observe")
    assert reading_of(await observer.tick()) == shared
    await age_everything(windmill, 12)
    own = reading_of(await observer.tick())
    assert (own.by, own.tags[0].waiting) == ("observer", 2)
