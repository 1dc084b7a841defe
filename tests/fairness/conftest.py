"""Fixtures of the fairness tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from exporter.conditions import Conditions
from exporter.config import DatabaseConfig, FairnessConfig
from exporter.database.database import Connection, Database
from exporter.fairness.gate import Cadence
from exporter.fairness.refresh import Refresher
from tests.fairness.replicas import ENFORCE, FAST, MakeReplica, nothing_more


@pytest.fixture
async def replica(windmill_url: str) -> AsyncIterator[MakeReplica]:
    """Makes replicas of the product's refresh, each with a pool of its own."""
    databases: list[Database] = []

    async def connect() -> Connection:
        return await asyncpg.connect(windmill_url, statement_cache_size=0)

    def make(config: FairnessConfig = ENFORCE, cadence: Cadence = FAST, name: str | None = None) -> Refresher:
        database = Database(connect, DatabaseConfig())
        databases.append(database)
        clock = asyncio.get_running_loop().time
        return Refresher(
            database,
            config,
            replica=name or f"replica-{len(databases)}",
            conditions=Conditions(),
            require=nothing_more,
            require_audit=nothing_more,
            monotonic=clock,
            cadence=cadence,
        )

    yield make
    for database in databases:
        database.close()
