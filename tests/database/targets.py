"""Where the database tests connect to, and what they look at."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg

from exporter.config import DatabaseConfig
from exporter.database.connect import Connector
from exporter.database.database import Connection, Database
from exporter.database.target import Host, Target
from exporter.database.url import parse_url

QUICK = DatabaseConfig(statement_timeout_seconds=0.2, lock_timeout_seconds=0.1, connect_timeout_seconds=0.3)

MakeRole = Callable[..., Awaitable[str]]


class Clock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


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


async def eventually(condition: Callable[[], Awaitable[bool]], seconds: float = 10.0) -> None:
    """Wait until a condition holds, at the most so long."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 -- what is awaited happens in the server
            await asyncio.sleep(0.02)
