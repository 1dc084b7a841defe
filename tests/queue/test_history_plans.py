"""How the stored series are read: by index where a window is small, in one pass where it is not, beside foreign rows.

700,000 rows of somebody else and 60,000 of ours, with and without statistics (field case F28).
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import asyncpg
import pytest

from exporter.database.database import Connection
from exporter.database.statement import Statement
from exporter.demo.postgres import EmbeddedPostgres
from exporter.queue.grid import GRID
from exporter.queue.history import ALL_SERIES, PLANNER, SERIES_IDS, SERIES_PLANNER, SOME_SERIES
from exporter.queue.stored import PAGE
from tests.conftest import TEMPLATE
from tests.queue.plans import scans, touched_blocks

FOREIGN = 700_000
TAGS = 20
DAY = 86_400.0


@pytest.fixture(scope="module")
def stored(template_loaded: EmbeddedPostgres) -> str:
    """URL of a database with a table of metrics that is mostly not ours."""
    name = "windmill_series"

    async def lay_out() -> None:
        admin = await asyncpg.connect(template_loaded.url())
        await admin.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        await admin.close()
        connection = await asyncpg.connect(template_loaded.url(database=name))
        await connection.execute("ALTER TABLE metrics SET (autovacuum_enabled = off)")
        await connection.execute(
            f"""
            INSERT INTO metrics (id, value, created_at)
            SELECT 'other_' || n % 7, to_jsonb(n), now() - n * interval '1.7 seconds'
              FROM generate_series(1, {FOREIGN}) AS n;
            INSERT INTO metrics (id, value, created_at)
            SELECT 'queue_' || kind || '_tag ' || tag, to_jsonb(n % 97), now() - n * interval '800 seconds'
              FROM generate_series(1, 1500) AS n, generate_series(1, {TAGS}) AS tag,
                   unnest('{{count,delay}}'::text[]) AS kind
            """
        )
        await connection.close()

    asyncio.run(lay_out())
    return template_loaded.url(database=name)


@pytest.fixture(params=["without statistics", "with statistics"])
async def connection(stored: str, request: pytest.FixtureRequest) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(stored, statement_cache_size=0)
    if request.param == "with statistics":
        await connection.execute("ANALYZE metrics")
    yield connection
    await connection.close()


async def explain(
    connection: Connection, statement: Statement, *arguments: Any, planner: Mapping[str, str] = PLANNER
) -> list[dict[str, Any]]:
    """Every node of the executed plan; parameters of a COPY stand in the text, as they do there."""
    text = statement.render({"schema": "public"})
    async with connection.transaction(readonly=True):
        for name, value in planner.items():
            await connection.execute("SELECT set_config($1, $2, true)", name, value)
        for number, argument in enumerate(arguments, 1):
            literal = f"'{{{','.join(argument)}}}'::text[]" if isinstance(argument, list) else f"({argument!r})"
            text = text.replace(f"${number}", literal)
        [plan] = json.loads(await connection.fetchval("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + text))
    return list(_nodes(plan["Plan"]))


def _nodes(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node, *itertools.chain.from_iterable(map(_nodes, node.get("Plans", ())))]


async def bounds(connection: Connection, seconds: float) -> tuple[float, float, float, float]:
    """The first four parameters of a window that ends now."""
    now = await connection.fetchval("SELECT date_part('epoch', now())")
    return now - seconds - 900, now, now - seconds, seconds / 120


async def pages(connection: Connection) -> int:
    """Blocks of the whole table."""
    return int(await connection.fetchval("SELECT pg_relation_size('metrics') / 8192"))


async def test_an_hour_is_read_by_index(connection: Connection) -> None:
    nodes = await explain(connection, ALL_SERIES, *await bounds(connection, 3600), planner=SERIES_PLANNER)
    assert "Seq Scan" not in {how for how, _ in scans(nodes, "metrics")}
    assert touched_blocks(nodes) < await pages(connection) / 10


async def test_14_days_are_one_pass_and_one_hash_aggregation(connection: Connection) -> None:
    nodes = await explain(connection, ALL_SERIES, *await bounds(connection, 14 * DAY), planner=SERIES_PLANNER)
    [aggregate] = [node for node in nodes if node["Node Type"] == "Aggregate"]
    assert aggregate["Strategy"] == "Hashed"
    below = _nodes(aggregate)
    assert "Sort" not in {node["Node Type"] for node in below}
    assert {node["Actual Loops"] for node in below} == {1}
    rows = max(node["Actual Rows"] for node in below)
    assert rows == pytest.approx(1500 * 2 * TAGS, rel=0.02)
    assert next(node for node in nodes if node["Node Type"] == "Sort")["Actual Rows"] <= 122 * 2 * TAGS


async def test_one_tag_is_read_by_index(connection: Connection) -> None:
    ids = ["queue_count_tag 3", "queue_delay_tag 3"]
    nodes = await explain(connection, SOME_SERIES, *await bounds(connection, 14 * DAY), ids, planner=SERIES_PLANNER)
    assert "Seq Scan" not in {how for how, _ in scans(nodes, "metrics")}
    assert max(node["Actual Rows"] for node in nodes) <= 2 * 1500


async def test_the_next_sample_after_a_climb_is_one_look_up_in_the_index(stored: str) -> None:
    """Each slot has at most one, whatever the number of its samples."""
    connection = await asyncpg.connect(stored, statement_cache_size=0)
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(
            "INSERT INTO metrics (id, value, created_at)"
            " SELECT 'queue_delay_climbs', CASE WHEN n % 2 = 1 THEN '3'::jsonb ELSE '{\"since\": 1e9}'::jsonb END,"
            " now() - n * interval '30 seconds' FROM generate_series(1, 2000) AS n"
        )
        nodes = await explain(connection, ALL_SERIES, *await bounds(connection, DAY), planner=SERIES_PLANNER)
    finally:
        await transaction.rollback()
        await connection.close()
    looked_up = [node for node in nodes if node.get("Alias") == "next"]
    assert {node.get("Index Name") for node in looked_up if "Index Name" in node} == {"idx_metrics_id_created_at"}
    assert 0 < sum(node["Actual Rows"] * node["Actual Loops"] for node in looked_up) <= 122


async def test_tags_are_listed_without_reading_the_rows(connection: Connection) -> None:
    nodes = await explain(connection, SERIES_IDS)
    assert {name for _, name in scans(nodes, "metrics")} == {"idx_metrics_id_created_at"}
    assert touched_blocks(nodes) < 8 * 2 * TAGS


async def test_a_page_of_stored_rows_is_bounded(connection: Connection) -> None:
    begin, now, *_ = await bounds(connection, 14 * DAY)
    for series_id in ("", "queue_count_tag 3", "queue_delay_tag 9"):
        moment = "'2100-01-01'::timestamptz"
        text = PAGE.render({"schema": "public"}).replace("$3", f"'{series_id}'").replace("$4", moment)
        nodes = await explain(connection, Statement("page", text), begin, now, "unused", "unused", 500)
        assert "Seq Scan" not in {how for how, _ in scans(nodes, "metrics")}
        read = sum(node["Actual Rows"] * node["Actual Loops"] for node in nodes if "Relation Name" in node)
        assert read <= 1500 + 502, "one series and one page at the most"


async def test_a_grid_is_read_by_index(connection: Connection) -> None:
    ids = [f"queue_count_tag {number}" for number in range(1, 6)]
    nodes = await explain(connection, GRID, *await bounds(connection, DAY), ids)
    assert "Seq Scan" not in {how for how, _ in scans(nodes, "metrics")}
