"""What was lost on the way: replaced silently before anything was done, run once more as a whole, never sent twice."""

from __future__ import annotations

import asyncio

import pytest

from exporter.database.database import Connection, Database, run_once_more
from exporter.database.statement import Statement
from exporter.errors import DatabaseError, DatabaseUnavailable, StatementFailed
from tests.database.proxy import TcpProxy
from tests.database.targets import eventually
from tests.database.test_transactions import ADD, COUNT, PID, count, pid

READ_ALL = Statement("read_all", "SELECT id FROM {schema}.metrics")


async def test_a_dead_idle_connection_is_replaced_without_an_error(
    through_proxy: Database, proxy: TcpProxy, windmill: Connection
) -> None:
    first = await pid(through_proxy)
    proxy.lose_answer_to(b"BEGIN")
    assert await pid(through_proxy) != first
    await windmill.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await asyncio.sleep(0.1)
    await pid(through_proxy)
    assert through_proxy.generation == 3


async def test_a_fresh_connection_that_dies_on_begin_is_reported(through_proxy: Database, proxy: TcpProxy) -> None:
    proxy.lose_answer_to(b"BEGIN")
    with pytest.raises(DatabaseUnavailable) as caught:
        await pid(through_proxy)
    assert (caught.value.reason, caught.value.retryable) == ("connection_lost", True)


async def test_a_commit_whose_answer_is_lost_is_reported_and_never_sent_again(
    through_proxy: Database, proxy: TcpProxy, windmill: Connection
) -> None:
    runs = 0

    async def write() -> None:
        nonlocal runs
        runs += 1
        async with through_proxy.transaction("write", read_only=False) as transaction:
            await transaction.execute(ADD, "queue_count_a", "1")
            proxy.lose_answer_to(b"COMMIT")

    with pytest.raises(DatabaseUnavailable, match=r"^write: ") as caught:
        await run_once_more(through_proxy, write)
    assert (caught.value.reason, caught.value.retryable, runs) == ("connection_lost", False, 1)

    async def stored() -> bool:
        return bool(await windmill.fetchval("SELECT count(*) = 1 FROM metrics"))

    await eventually(stored)


async def test_a_whole_operation_is_run_once_more_after_a_lost_connection(
    through_proxy: Database, proxy: TcpProxy, windmill: Connection
) -> None:
    """The second run begins with its own read; the first left nothing behind."""
    await asyncio.gather(count(through_proxy), count(through_proxy))
    runs = 0

    async def write() -> int:
        nonlocal runs
        runs += 1
        async with through_proxy.transaction("write", read_only=False) as transaction:
            rows = await transaction.fetch(READ_ALL)
            if runs == 1:
                proxy.lose_answer_to(b"INSERT")
            await transaction.execute(ADD, "queue_count_a", "1")
            return len(rows)

    assert await run_once_more(through_proxy, write) == 0
    assert runs == 2
    assert await windmill.fetchval("SELECT count(*) FROM metrics") == 1
    assert through_proxy.pool_connections == {"idle": 1, "busy": 0}


async def test_a_lost_read_may_be_repeated_even_from_its_commit(through_proxy: Database, proxy: TcpProxy) -> None:
    proxy.lose_answer_to(b"COMMIT")
    assert await run_once_more(through_proxy, lambda: count(through_proxy)) == 0


async def test_admin_shutdown_is_retried(database: Database, windmill: Connection) -> None:
    runs = 0

    async def read() -> int:
        nonlocal runs
        runs += 1
        async with database.transaction("read") as transaction:
            [row] = await transaction.fetch(PID)
            if runs == 1:
                await windmill.execute("SELECT pg_terminate_backend($1, 5000)", row["pid"])
            await transaction.fetch(COUNT)
        return runs

    assert await run_once_more(database, read) == 2


@pytest.mark.parametrize(
    ("retryable", "runs"),
    [(StatementFailed("demoted", reason="read_only", retryable=True), 2), (StatementFailed("no", reason="x"), 1)],
)
async def test_only_what_a_failover_explains_is_run_again_and_only_once(
    retryable: DatabaseError, runs: int, database: Database
) -> None:
    await pid(database)
    seen = []

    async def fail() -> None:
        seen.append(database.pool_connections["idle"])
        raise retryable

    with pytest.raises(StatementFailed):
        await run_once_more(database, fail)
    assert seen == [1, 0][:runs]
