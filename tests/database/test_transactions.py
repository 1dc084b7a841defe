"""Transactions carry their limits and leave nothing behind."""

from __future__ import annotations

from exporter.database.database import Database
from exporter.database.statement import Statement


async def test_a_transaction_sets_its_limits_locally(database: Database) -> None:
    async with database.transaction("test") as transaction:
        [row] = await transaction.fetch(Statement("limit", "SELECT current_setting('statement_timeout') AS value"))
    assert row["value"] == "4s"
