"""Several samplers on one database: one reads a cycle, and no crash or pause writes a row twice."""

from __future__ import annotations

import asyncio

import pytest

from exporter.database.database import Connection, Database
from exporter.database.state_rows import CLAIM
from exporter.errors import DatabaseError
from exporter.queue.values import QueueOutcome
from tests.queue.scene import (
    Job,
    add_jobs,
    age_everything,
    count_rows,
    database_at,
    reading_of,
    results_of,
    sampler_of,
    stored_rows,
    transaction_ids_used,
    wait_for_lock,
)


def readers(outcomes: list[QueueOutcome]) -> int:
    """How many of the ticks read the queue and decided."""
    return sum(bool(outcome.samples) for outcome in outcomes)


async def test_of_eight_replicas_exactly_one_reads_each_cycle(windmill: Connection, windmill_url: str) -> None:
    """Also in the first cycle, when the row is missing; together they write what one alone would have written."""
    databases = [database_at(windmill_url) for _ in range(8)]
    samplers = [sampler_of(database, f"replica-{number}") for number, database in enumerate(databases)]
    await add_jobs(windmill, Job(), number=9)
    for _ in range(7):
        outcomes = await asyncio.gather(*(sampler.tick() for sampler in samplers))
        assert readers(outcomes) == 1
        await age_everything(windmill, 10)
    # At 0 s both; the delay at 30 s climbs and draws itself from then on.
    assert [series_id for series_id, _ in await stored_rows(windmill)] == [
        "queue_count_deno",
        "queue_delay_deno",
        "queue_delay_deno",
    ]
    for database in databases:
        database.close()


async def test_all_replicas_show_the_same_numbers(windmill: Connection, windmill_url: str) -> None:
    """Field case F83."""
    databases = [database_at(windmill_url) for _ in range(3)]
    await add_jobs(windmill, Job(), number=9)
    readings = [reading_of(await sampler_of(database).tick()) for database in databases]
    assert readings[0] == readings[1] == readings[2]
    assert [one.waiting for one in readings[0].tags] == [9]
    for database in databases:
        database.close()


async def test_a_loser_writes_nothing_and_takes_no_transaction_id(database: Database, windmill: Connection) -> None:
    await add_jobs(windmill, Job())
    await sampler_of(database).tick()
    loser = sampler_of(database, "replica-b")
    before = await windmill.fetch("SELECT xmin::text, ctid::text FROM background_task_state")
    assert await transaction_ids_used(windmill, loser.tick) == 0
    assert await windmill.fetch("SELECT xmin::text, ctid::text FROM background_task_state") == before
    assert (await loser.tick()).samples == ()


async def test_samplers_that_do_not_share_a_claim_add_no_rows_beyond_a_tie(
    database: Database, windmill: Connection
) -> None:
    """A second sampler such as Windmill's own knows nothing of our row: only what is stored keeps it quiet."""
    await add_jobs(windmill, Job())
    first, second = sampler_of(database), sampler_of(database, "a stranger")
    for _ in range(10):
        await first.tick()
        await windmill.execute("UPDATE background_task_state SET updated_at = 'epoch'")
        assert results_of(await second.tick()) == {"unchanged": 2}
        await age_everything(windmill, 10)
    assert await count_rows(windmill) == 3


async def test_a_winner_that_dies_between_claim_and_write_costs_one_cycle(
    windmill: Connection, windmill_url: str
) -> None:
    winner, heir = database_at(windmill_url), database_at(windmill_url)
    await add_jobs(windmill, Job())
    async with windmill.transaction():
        await windmill.execute("LOCK TABLE metrics IN SHARE MODE")
        dying = asyncio.create_task(sampler_of(winner).tick())
        await wait_for_lock(windmill, "queue write")
        dying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dying
    assert (await sampler_of(heir, "replica-b").tick()).snapshot is None
    assert await count_rows(windmill) == 0
    await age_everything(windmill, 10)
    assert results_of(await sampler_of(heir, "replica-b").tick()) == {"stored": 2}
    assert await count_rows(windmill) == 2
    for database in (winner, heir):
        database.close()


async def test_a_winner_whose_write_is_refused_leaves_nothing_half_written(
    database: Database, windmill: Connection
) -> None:
    """Rows and reading go together, or not at all: the insert succeeds here and the reading does not."""
    await add_jobs(windmill, Job())
    await windmill.execute("ALTER TABLE background_task_state ADD CHECK (NOT value ? 'tags')")
    with pytest.raises(DatabaseError):
        await sampler_of(database).tick()
    assert await count_rows(windmill) == 0


async def test_a_winner_that_was_paused_past_its_cycle_is_fenced_out(windmill: Connection, windmill_url: str) -> None:
    slow, fast = database_at(windmill_url), database_at(windmill_url)
    await add_jobs(windmill, Job())
    async with windmill.transaction():
        await windmill.execute("LOCK TABLE v2_job_queue IN ACCESS EXCLUSIVE MODE")
        paused = asyncio.create_task(sampler_of(slow, "slow").tick())
        await wait_for_lock(windmill, "queue read")
        async with fast.transaction("test", read_only=False) as transaction:
            await transaction.fetch(CLAIM, "windmill_exporter_queue", 0.0)
    outcome = await paused
    assert results_of(outcome) == {"fenced": 2}
    assert outcome.snapshot is None
    assert await count_rows(windmill) == 0
    assert await windmill.fetchval("SELECT value::text FROM background_task_state") == '{"version": 1}'
    for database in (slow, fast):
        database.close()


async def test_no_transaction_stays_open_between_ticks(database: Database, windmill: Connection) -> None:
    """Field case F21: reading, deciding and writing are separate transactions, and none outlives the tick."""
    await sampler_of(database).tick()
    states = await windmill.fetch(
        "SELECT state FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    assert {row["state"] for row in states} == {"idle"}
