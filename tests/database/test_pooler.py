"""Behind a real PgBouncer in transaction mode everything works without a switch, and its server session stays clean."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from exporter.config import DatabaseConfig
from exporter.database.database import Connection, Database
from exporter.demo.postgres import EmbeddedPostgres
from tests.database.pooler import pgbouncer
from tests.database.targets import open_database, target_at
from tests.database.test_faults import sleep_in
from tests.database.test_transactions import SESSION, count, pid, setting, work_through_everything


async def server_session(port: int, url: str) -> asyncpg.Record:
    """The state of the pooler's server session, seen through the pooler."""
    connection: Connection = await asyncpg.connect(
        host="127.0.0.1", port=port, user="postgres", database=target_at(url).database, statement_cache_size=0
    )
    async with connection.transaction():
        row = await connection.fetchrow(SESSION)
    await connection.close()
    assert row is not None
    return row


async def test_transactions_work_and_leave_the_server_session_as_it_was(windmill_url: str, pooler_port: int) -> None:
    """Field cases F01 and F03."""
    before = await server_session(pooler_port, windmill_url)
    database = open_database(target_at(windmill_url, pooler_port))
    await work_through_everything(database)
    assert await count(database) == 20
    assert await setting(database, "statement_timeout") == "4s"
    database.close()
    assert await server_session(pooler_port, windmill_url) == before


async def test_many_clients_share_few_server_sessions_without_a_collision(
    windmill_url: str, template_loaded: EmbeddedPostgres
) -> None:
    """Field case F01: two replicas, eight loops each, two server sessions."""
    with pgbouncer(template_loaded.port, pool_size=2) as port:
        replicas = [open_database(target_at(windmill_url, port)) for _ in range(2)]

        async def loop(database: Database) -> None:
            for _ in range(30):
                await count(database)

        await asyncio.gather(*(loop(database) for database in replicas for _ in range(8)))
        for database in replicas:
            database.close()


@pytest.mark.parametrize("mode", ["transaction", "session"])
async def test_a_replica_that_dies_mid_statement_disturbs_nobody(
    mode: str, windmill_url: str, template_loaded: EmbeddedPostgres
) -> None:
    """Field case F02, with one server session and no reset query."""
    with pgbouncer(template_loaded.port, pool_mode=mode, extra="server_reset_query =") as port:
        dying = open_database(target_at(windmill_url, port), DatabaseConfig(statement_timeout_seconds=30))
        task = asyncio.create_task(sleep_in(dying))
        await asyncio.sleep(0.2)
        dying.close()
        await asyncio.gather(task, return_exceptions=True)
        next_one = open_database(target_at(windmill_url, port))
        assert await pid(next_one) > 0
        next_one.close()
