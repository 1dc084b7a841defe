"""Expired samples are deleted in bounded batches, by one replica, and nobody else's rows ever."""

from __future__ import annotations

import asyncio

import pytest

from exporter.config import QueueConfig
from exporter.database.database import Connection, Database
from exporter.queue.retention import DELETE_EXPIRED, MAX_BATCHES, PLANNER, RETENTION_REQUIREMENTS, Retention
from exporter.queue.values import QueueMode
from tests.queue.plans import indexes, plan_of, scans, touched_blocks
from tests.queue.scene import HOSTILE_NAMES, add_sample, count_rows, database_at, stored_rows

DAY = 86_400.0
FOREIGN = (
    "queueXcount_deno",
    "queueXdelay_deno",
    "queue_other",
    "queue_counts",
    "other_deno",
    "queue",
    "zzz_",
    "Queue_count_x",
)


def retention_of(database: Database, mode: str = "sample", batch_rows: int = 5000) -> Retention:
    return Retention(database, QueueConfig(mode=QueueMode(mode)), batch_rows)


async def fill(connection: Connection, number: int, age_days: int = 20, tags: int = 3) -> None:
    await connection.execute(
        "INSERT INTO metrics (id, value, created_at)"
        " SELECT 'queue_count_tag ' || n % $3, '1', now() - make_interval(days => $2) FROM generate_series(1, $1) AS n",
        number,
        age_days,
        tags,
    )


async def make_due(connection: Connection) -> None:
    await connection.execute("UPDATE background_task_state SET updated_at = 'epoch'")


async def test_rows_older_than_14_days_go_and_the_others_stay(database: Database, windmill: Connection) -> None:
    for kind in ("count", "delay"):
        for age in (13.99, 14.01, 300):
            await add_sample(windmill, f"queue_{kind}_age {age}", "1", age * DAY)
    await add_sample(windmill, "queue_delay_unreadable", "null", 15 * DAY)
    assert await retention_of(database).tick() == 5
    assert {series_id for series_id, _ in await stored_rows(windmill)} == {
        "queue_count_age 13.99",
        "queue_delay_age 13.99",
    }


async def test_rows_of_others_are_never_touched(database: Database, windmill: Connection) -> None:
    """The LIKE of the partial index also matches `queueXcount...`, where its underscore is a wildcard."""
    for series_id in FOREIGN:
        await add_sample(windmill, series_id, "1", 400 * DAY)
    await add_sample(windmill, "queue_count_", "1", 400 * DAY)
    assert await retention_of(database).tick() == 1
    assert {series_id for series_id, _ in await stored_rows(windmill)} == set(FOREIGN)


async def test_every_series_is_found_whatever_its_name(database: Database, windmill: Connection) -> None:
    for name in HOSTILE_NAMES:
        await add_sample(windmill, f"queue_delay_{name}", "1", 15 * DAY)
        await add_sample(windmill, f"queue_delay_{name}", "1", 1)
    assert await retention_of(database).tick() == len(HOSTILE_NAMES)
    assert await count_rows(windmill) == len(HOSTILE_NAMES)


async def test_infinite_moments_hurt_nobody(database: Database, windmill: Connection) -> None:
    for moment in ("infinity", "-infinity"):
        await windmill.execute(
            "INSERT INTO metrics (id, value, created_at) VALUES ('queue_count_x', '1', $1::text::timestamptz)", moment
        )
    assert await retention_of(database).tick() == 1


async def test_one_tick_deletes_a_bounded_number(database: Database, windmill: Connection) -> None:
    await fill(windmill, 250)
    assert await retention_of(database, batch_rows=10).tick() == 10 * MAX_BATCHES
    await make_due(windmill)
    assert await retention_of(database, batch_rows=10).tick() == 50
    assert await count_rows(windmill) == 0


async def test_it_runs_rarely(database: Database, windmill: Connection) -> None:
    retention = retention_of(database)
    assert await retention.tick() == 0
    await fill(windmill, 5)
    assert await retention.tick() == 0
    await make_due(windmill)
    assert await retention.tick() == 5


async def test_one_of_several_replicas_deletes(windmill: Connection, windmill_url: str) -> None:
    await fill(windmill, 100)
    databases = [database_at(windmill_url) for _ in range(5)]
    deleted = await asyncio.gather(*(retention_of(database).tick() for database in databases))
    assert sorted(deleted) == [0, 0, 0, 0, 100]
    for database in databases:
        database.close()


async def test_an_observer_deletes_nothing(database: Database, windmill: Connection) -> None:
    await fill(windmill, 5)
    assert await retention_of(database, mode="observe").tick() == 0
    assert (await count_rows(windmill), await count_rows(windmill, "background_task_state")) == (5, 0)


async def test_it_needs_exactly_what_it_declares(windmill: Connection, windmill_url: str) -> None:
    await windmill.execute(
        """
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'queue_retention') THEN
                CREATE ROLE queue_retention LOGIN;
            END IF;
        END $$
        """
    )
    metrics, state = RETENTION_REQUIREMENTS
    assert metrics.delete
    await windmill.execute("GRANT SELECT, DELETE ON metrics TO queue_retention")
    for verb in ("select", "insert", "update"):
        columns = ", ".join(getattr(state, verb))
        await windmill.execute(f"GRANT {verb} ({columns}) ON background_task_state TO queue_retention")
    await fill(windmill, 5)
    deleting = database_at(windmill_url.replace("postgres@", "queue_retention@"))
    assert await retention_of(deleting).tick() == 5
    deleting.close()


@pytest.mark.parametrize("analyzed", [True, False])
async def test_a_large_table_is_never_scanned(analyzed: bool, windmill: Connection) -> None:
    """300,000 rows of others before and after ours, and one series with most of the expired rows."""
    await windmill.execute("ALTER TABLE metrics SET (autovacuum_enabled = off)")
    await windmill.execute(
        """
        INSERT INTO metrics (id, value, created_at)
        SELECT CASE n % 4 WHEN 0 THEN 'other_' || n % 100 WHEN 1 THEN 'zzz_' || n % 100
                          WHEN 2 THEN 'queue_count_one' ELSE 'queue_delay_tag ' || n % 1000 END,
               '1', now() - interval '20 days' + n * interval '20 days' / 300000
          FROM generate_series(1, 300000) AS n
        """
    )
    if analyzed:
        await windmill.execute("ANALYZE metrics")
    nodes = await plan_of(windmill, DELETE_EXPIRED, 14, 100, planner=PLANNER)
    assert {how for how, _ in scans(nodes, "metrics")} <= {"Index Scan", "Index Only Scan", "Tid Scan", "ModifyTable"}
    assert "idx_metrics_id_created_at" in indexes(nodes)
    deleted = next(node["Actual Rows"] for node in nodes if node["Node Type"] == "Tid Scan")
    assert deleted == 100
    assert touched_blocks(nodes) < 2000
