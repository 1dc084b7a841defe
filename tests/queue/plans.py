"""Execution plans of our statements, as the product would run them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from exporter.database.database import Connection
from exporter.database.statement import Statement


async def plan_of(
    connection: Connection, statement: Statement, *arguments: object, planner: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Every node of the executed plan; what the statement wrote is rolled back."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        for name, value in planner.items():
            await connection.execute("SELECT set_config($1, $2, true)", name, value)
        text = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + statement.render({"schema": "public"})
        [plan] = json.loads(await connection.fetchval(text, *arguments))
    finally:
        await transaction.rollback()
    return list(_nodes(plan["Plan"]))


def scans(nodes: list[dict[str, Any]], table: str) -> list[tuple[str, str | None]]:
    """How `table` is read: node type and index. A bitmap's index scan names no table and is not listed."""
    return [(node["Node Type"], node.get("Index Name")) for node in nodes if node.get("Relation Name") == table]


def indexes(nodes: list[dict[str, Any]]) -> set[str]:
    """Every index that the plan uses."""
    return {node["Index Name"] for node in nodes if "Index Name" in node}


def touched_blocks(nodes: list[dict[str, Any]]) -> int:
    """Blocks that the whole statement touched."""
    return int(nodes[0]["Shared Hit Blocks"] + nodes[0]["Shared Read Blocks"])


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)
