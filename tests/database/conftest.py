"""Fixtures of the database tests: a misbehaving network, a real pooler, roles that go with the test."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import asyncpg
import pytest

from exporter.config import DatabaseConfig
from exporter.database.connect import Connector
from exporter.database.database import Connection, Database
from exporter.database.target import Host, Target
from exporter.database.url import parse_url
from exporter.demo.postgres import EmbeddedPostgres
from tests.database.pooler import pgbouncer
from tests.database.proxy import TcpProxy

MakeRole = Callable[..., Awaitable[str]]
_role_numbers = itertools.count()


@pytest.fixture
async def proxy(template_loaded: EmbeddedPostgres) -> AsyncIterator[TcpProxy]:
    """A proxy in front of the test server."""
    async with TcpProxy(template_loaded.port) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def pooler_port(template_loaded: EmbeddedPostgres) -> Iterator[int]:
    """Port of a PgBouncer in transaction mode with one server connection per database."""
    with pgbouncer(template_loaded.port) as port:
        yield port


@pytest.fixture
async def make_role(windmill: Connection) -> AsyncIterator[MakeRole]:
    """Creates login roles in the test's database: `await make_role("CONNECTION LIMIT 2")` yields the name."""
    names: list[str] = []

    async def make(options: str = "") -> str:
        name = f'role "{next(_role_numbers)}'  # hostile on purpose: a space and a quote
        await windmill.execute(f"CREATE ROLE {quoted(name)} LOGIN {options}")
        names.append(name)
        return name

    yield make
    for name in names:
        await windmill.execute(f"DROP OWNED BY {quoted(name)}")
        await windmill.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = $1::text::name", name
        )
        await windmill.execute(f"DROP ROLE {quoted(name)}")


def quoted(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def target_at(url: str, port: int | None = None, user: str | None = None) -> Target:
    """The target of a URL, at another port or as another user."""
    target = parse_url(url)
    return Target(
        hosts=(Host("127.0.0.1", port or target.hosts[0].port),),
        user=user or target.user,
        database=target.database,
        tls=target.tls,
    )


def open_database(target: Target, config: DatabaseConfig | None = None) -> Database:
    """The product's pool on a target, through its own connector. The caller closes it."""
    config = config or DatabaseConfig()
    return Database(Connector(lambda: target, config), config)


async def sessions_of(connection: Connection, application: str = "windmill-exporter%") -> list[asyncpg.Record]:
    """What `pg_stat_activity` shows of the product in this connection's database."""
    return await connection.fetch(
        """
        SELECT pid, state, wait_event_type, application_name, query
          FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE $1
        """,
        application,
    )
