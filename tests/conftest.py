"""Fixtures of the whole suite: one PostgreSQL server, a fresh database with Windmill's tables for each test."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest
from hypothesis import settings

from exporter.config import DatabaseConfig
from exporter.database.database import Connection, Database
from exporter.demo.postgres import EmbeddedPostgres
from tests.sources import WINDMILL_SCHEMA

pytest_plugins = ("tests.guards", "tests.requirements", "tests.roles")

# A change is judged by the same examples each time; at a desk every run looks for new ones.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI") == "true":
    settings.load_profile("ci")

TEMPLATE = "windmill_template"
_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """One real PostgreSQL for the session. No autovacuum: some tests count every transaction of theirs."""
    with EmbeddedPostgres(options={"autovacuum": "off"}) as server:
        yield server


@pytest.fixture(scope="session")
def template_loaded(postgres: EmbeddedPostgres) -> EmbeddedPostgres:
    """The server with a template database that holds Windmill's tables."""
    import asyncio

    async def load() -> None:
        admin = await asyncpg.connect(postgres.url())
        await admin.execute(f"CREATE DATABASE {TEMPLATE}")
        await admin.close()
        connection = await asyncpg.connect(postgres.url(database=TEMPLATE))
        await connection.execute(WINDMILL_SCHEMA.read_text())
        await connection.close()

    asyncio.run(load())
    return postgres


@pytest.fixture
async def windmill_url(template_loaded: EmbeddedPostgres) -> AsyncIterator[str]:
    """URL of a fresh database with Windmill's tables, as its owner."""
    name = f"windmill_{next(_numbers)}"
    admin = await asyncpg.connect(template_loaded.url())
    await admin.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    yield template_loaded.url(database=name)
    await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await admin.close()


@pytest.fixture
async def windmill(windmill_url: str) -> AsyncIterator[Connection]:
    """A plain connection of the tables' owner, to lay out a scene and to look at the result."""
    connection = await asyncpg.connect(windmill_url)
    yield connection
    await connection.close()


@pytest.fixture
async def database(windmill_url: str) -> AsyncIterator[Database]:
    """The product's own database layer on the fresh database."""

    async def connect() -> Connection:
        return await asyncpg.connect(windmill_url, statement_cache_size=0)

    database = Database(connect, DatabaseConfig())
    yield database
    database.close()
