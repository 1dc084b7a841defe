"""The aggregation reads a large history by index only, whatever the planner believes (field cases F28, F29)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from exporter.database.database import Connection
from exporter.demo.postgres import EmbeddedPostgres
from exporter.fairness.store import OCCUPANCY
from tests.conftest import TEMPLATE
from tests.fairness.rows import lay_out_history

COMPLETED = 500_000
HISTORY_TABLES = {"v2_job_completed", "v2_job", "v2_job_queue"}


@pytest.fixture(scope="module")
def history(template_loaded: EmbeddedPostgres) -> str:
    """URL of a database with a month's history, 2,000 live, 20,000 queued and 20,000 stuck jobs."""
    name = "windmill_history"

    async def lay_out() -> None:
        admin = await asyncpg.connect(template_loaded.url())
        await admin.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        await admin.close()
        connection = await asyncpg.connect(template_loaded.url(database=name))
        for table in (*HISTORY_TABLES, "v2_job_runtime"):
            await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        await lay_out_history(connection, completed=COMPLETED, live=2000, queued=20_000, stuck=20_000)
        await connection.close()

    asyncio.run(lay_out())
    return template_loaded.url(database=name)


@pytest.fixture
async def connection(history: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(history, statement_cache_size=0)
    await connection.execute("SET max_parallel_workers_per_gather = 0; SET jit = off")
    yield connection
    await connection.close()


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


async def explain(connection: Connection, text: str, *arguments: object) -> dict[str, Any]:
    plan = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}", *arguments)
    found: dict[str, Any] = json.loads(plan)[0]["Plan"]
    return found


def assert_bounded(plan: dict[str, Any], pages_of_completed: int) -> None:
    read_whole = {node["Relation Name"] for node in nodes(plan) if node["Node Type"] == "Seq Scan"}
    assert not read_whole & HISTORY_TABLES
    indexes = {node.get("Index Name") for node in nodes(plan)}
    assert "ix_job_completed_completed_at" in indexes
    on_completed = [node for node in nodes(plan) if node.get("Relation Name") == "v2_job_completed"]
    touched = sum(node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in on_completed)
    assert touched < 0.05 * pages_of_completed


@pytest.mark.parametrize("statistics", ["without", "with"])
async def test_the_history_is_read_by_index_with_and_without_statistics(
    connection: Connection, statistics: str
) -> None:
    if statistics == "with":
        await connection.execute("ANALYZE")
    pages = await connection.fetchval("SELECT pg_relation_size('v2_job_completed') / 8192")
    assert pages > 5000
    text = OCCUPANCY.render({"schema": "public"})
    assert_bounded(await explain(connection, text, 10), pages)


async def test_a_generic_plan_reads_by_index_too(connection: Connection) -> None:
    text = OCCUPANCY.render({"schema": "public"})
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    await connection.execute(f"PREPARE occupancy (float8) AS {text}")
    pages = await connection.fetchval("SELECT pg_relation_size('v2_job_completed') / 8192")
    assert_bounded(await explain(connection, "EXECUTE occupancy (10)"), pages)


async def test_the_running_half_follows_live_jobs_and_not_the_stuck_ones(connection: Connection) -> None:
    plan = await explain(connection, OCCUPANCY.render({"schema": "public"}), 10)
    looked_up = [node for node in nodes(plan) if node.get("Relation Name") == "v2_job_queue"]
    assert 1500 <= sum(node["Actual Loops"] for node in looked_up) <= 2500
