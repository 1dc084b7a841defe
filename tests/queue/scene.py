"""Scenes of Windmill's queue: jobs, workers and stored samples, laid out relative to the database's now()."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import asyncpg

from exporter.config import DatabaseConfig, QueueConfig
from exporter.database.database import Connection, Database
from exporter.queue.reading import WholeQueue
from exporter.queue.sampler import Sampler
from exporter.queue.statements import READ_PLANNER, RecentSeries, read_queue, read_recent_series
from exporter.queue.values import QueueMode, QueueOutcome, QueueReading

# What callers may put into a tag or a workspace and what has broken parsers, formats and label sets before.
HOSTILE_NAMES = (
    "a_b_c",
    "count_",
    "queue_delay_x",
    'quote"d',
    "it's",
    "back\\slash",
    "new\nline",
    "tab\tand\rreturn",
    "{curly}",
    "%s%d",
    "$1",
    "😀 smile",
    "e\u0301 combining",
    "\u202eright to left",
    "\u2028separator",
    " ",
    "x" * 243,
    "é" * 243,
)


@dataclass(frozen=True)
class Job:
    """One row of `v2_job_queue`; `due` is seconds ago (negative: ahead)."""

    tag: str = "deno"
    due: float = 10.0
    running: bool = False
    priority: int | None = None
    workspace: str = "demo"
    suspended: bool = False


async def add_jobs(connection: Connection, *jobs: Job, number: int = 1) -> None:
    """Queue every job of `jobs`, `number` times."""
    await connection.executemany(
        """
        INSERT INTO v2_job_queue (id, workspace_id, scheduled_for, running, tag, priority, suspend_until)
        SELECT gen_random_uuid(), $1, now() - make_interval(secs => $2), $3, $4, $5::int,
               CASE WHEN $6 THEN now() + interval '1 day' END
        """,
        [(job.workspace, job.due, job.running, job.tag, job.priority, job.suspended) for job in jobs * number],
    )


async def add_worker(connection: Connection, worker: str, tags: list[str], pinged: float = 1.0) -> None:
    """A worker that serves `tags` and pinged that many seconds ago."""
    await connection.execute(
        """
        INSERT INTO worker_ping (worker, worker_instance, ping_at, custom_tags)
        VALUES ($1, 'host', now() - make_interval(secs => $2), $3)
        """,
        worker,
        pinged,
        tags,
    )


async def add_sample(connection: Connection, series_id: str, value: str, age: float) -> None:
    """A stored row, whoever wrote it; `value` is JSON text."""
    await connection.execute(
        "INSERT INTO metrics (id, value, created_at) VALUES ($1, $2::text::jsonb, now() - make_interval(secs => $3))",
        series_id,
        value,
        age,
    )


async def age_everything(connection: Connection, seconds: float) -> None:
    """Let that much time pass, as the database sees it: every stored moment moves back."""
    await connection.execute(
        f"""
        UPDATE metrics SET created_at = created_at - interval '{seconds} seconds',
               value = CASE WHEN jsonb_typeof(value) = 'object'
                            THEN jsonb_build_object('since', (value ->> 'since')::numeric - {seconds}) ELSE value END;
        UPDATE v2_job_queue SET scheduled_for = scheduled_for - interval '{seconds} seconds';
        UPDATE worker_ping SET ping_at = ping_at - interval '{seconds} seconds';
        UPDATE background_task_state SET updated_at = updated_at - interval '{seconds} seconds',
               value = CASE WHEN value ? 'at'
                            THEN jsonb_set(value, '{{at}}', to_jsonb((value ->> 'at')::numeric - {seconds}))
                            ELSE value END;
        """
    )


async def stored_rows(connection: Connection, like: str = "%") -> list[tuple[str, str]]:
    """Id and JSON text of the stored rows, oldest first."""
    rows = await connection.fetch(
        "SELECT id, value::text AS value FROM metrics WHERE id LIKE $1 ORDER BY created_at, id", like
    )
    return [(row["id"], row["value"]) for row in rows]


async def count_rows(connection: Connection, table: str = "metrics") -> int:
    """Number of rows of a table."""
    return int(await connection.fetchval(f"SELECT count(*) FROM {table}"))


async def queue_of(database: Database) -> WholeQueue:
    """One pass, as the sampler makes it."""
    async with database.transaction("test", isolation="REPEATABLE READ", planner=READ_PLANNER) as transaction:
        return await read_queue(transaction)


async def recent_of(database: Database, counted_until: float | None = None, drained_series: int = 4000) -> RecentSeries:
    """The stored series, as the sampler reads them."""
    async with database.transaction("test", isolation="REPEATABLE READ", planner=READ_PLANNER) as transaction:
        return await read_recent_series(transaction, counted_until, drained_series)


def database_at(url: str) -> Database:
    """One more replica's database layer."""

    async def connect() -> Connection:
        return await asyncpg.connect(url, statement_cache_size=0)

    return Database(connect, DatabaseConfig())


def sampler_of(database: Database, replica: str = "replica-a", mode: str = "sample", **settings: Any) -> Sampler:
    """A sampler of the product with the default settings but these."""
    return Sampler(database, QueueConfig(mode=QueueMode(mode), **settings), replica)


def results_of(outcome: QueueOutcome) -> dict[str, int]:
    """Series by result, without the zeros."""
    return {result.value: number for result, number in outcome.samples if number}


def reading_of(outcome: QueueOutcome) -> QueueReading:
    """The reading of a tick that learnt something."""
    assert outcome.snapshot is not None
    return outcome.snapshot.reading


async def wait_for_lock(connection: Connection, purpose: str) -> None:
    """Wait until a transaction of that purpose waits for a lock."""
    for _ in range(200):
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        blocked = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'",
            f"windmill-exporter {purpose}",
        )
        if blocked:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{purpose} never waited for a lock")


async def transaction_ids_used(connection: Connection, run: Callable[[], Awaitable[object]]) -> int:
    """Transaction ids that `run` takes. The least of several tries: the server's own maintenance takes some too."""
    next_id = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    used = []
    for _ in range(5):
        before = int(await connection.fetchval(next_id))
        await run()
        used.append(int(await connection.fetchval(next_id)) - before)
    return min(used)
