"""Whatever the network and the server do: every wait has an end, and the pool is whole afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from exporter.config import DatabaseConfig
from exporter.database.connect import Connector
from exporter.database.database import Connection, Database
from exporter.database.url import parse_url
from exporter.demo.postgres import EmbeddedPostgres
from exporter.errors import DatabaseError, DatabaseTimeout, DatabaseUnavailable
from tests.database.proxy import Mode, TcpProxy
from tests.database.targets import QUICK, MakeRole, eventually, open_database, sessions_of, target_at
from tests.database.test_transactions import ADD, COUNT, PID, SLEEP, count, pid

PATIENT = DatabaseConfig(statement_timeout_seconds=30, lock_timeout_seconds=30)


async def works_again(database: Database) -> None:
    async def works() -> bool:
        try:
            return await count(database) >= 0
        except DatabaseError:
            return False

    await eventually(works)


async def sleep_in(database: Database, seconds: float = 30.0) -> None:
    async with database.transaction("sleep") as transaction:
        await transaction.fetch(SLEEP, seconds)


@contextmanager
def frozen(server: EmbeddedPostgres) -> Iterator[None]:
    """Every process of the server is stopped: connections are accepted by the kernel, nothing answers."""
    postmaster = psutil.Process(server.pid)
    processes = [postmaster, *postmaster.children()]
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            process.resume()


def own_tasks() -> set[str]:
    return {getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()}


@pytest.mark.parametrize("mode", [Mode.HOLD, Mode.REFUSE])
async def test_a_deadline_sends_no_cancel_request(mode: Mode, through_proxy: Database, proxy: TcpProxy) -> None:
    """Field case F17: the driver's second connection would hang, or throw something unexpected."""
    await count(through_proxy)
    await proxy.set_mode(mode)
    proxy.freeze()
    with pytest.raises(DatabaseTimeout, match=r"^sleep: no answer within its deadline") as caught:
        await sleep_in(through_proxy)
    assert caught.value.reason == "deadline"
    assert proxy.accepted == 1
    assert through_proxy.pool_connections == {"idle": 0, "busy": 0}
    await asyncio.sleep(0)
    assert not [name for name in own_tasks() if name.startswith("Connection._cancel")]
    proxy.thaw()
    await proxy.set_mode(Mode.FORWARD)
    assert await count(through_proxy) == 0


async def test_a_cancelled_transaction_ends_at_once_and_takes_its_connection_along(
    through_proxy: Database, proxy: TcpProxy, windmill: Connection
) -> None:
    for moment in (0.0, 0.001, 0.01, 0.1):
        task = asyncio.create_task(sleep_in(through_proxy))
        await asyncio.sleep(moment)
        await proxy.set_mode(Mode.HOLD)
        accepted = proxy.accepted
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 1)
        await proxy.set_mode(Mode.FORWARD)
        assert proxy.accepted <= accepted + 1
        assert through_proxy.pool_connections["busy"] == 0
        assert await count(through_proxy) == 0

    async def gone() -> bool:
        return not any("pg_sleep" in session["query"] for session in await sessions_of(windmill))

    await eventually(gone)


async def test_a_block_that_cleans_up_slowly_still_sends_no_cancel_request(
    through_proxy: Database, proxy: TcpProxy
) -> None:
    """Field case F17: the connection is gone before the caller's own code runs again."""
    await proxy.set_mode(Mode.FORWARD)

    async def clean_up_slowly() -> None:
        async with through_proxy.transaction("slow", statement_seconds=30) as transaction:
            try:
                await transaction.fetch(SLEEP, 30.0)
            finally:
                await asyncio.sleep(0.05)

    task = asyncio.create_task(clean_up_slowly())
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert proxy.accepted == 1


async def test_a_cancellation_between_two_statements_takes_the_connection_along(
    database: Database, windmill: Connection
) -> None:
    started = asyncio.Event()

    async def write_and_think() -> None:
        async with database.transaction("write", read_only=False) as transaction:
            await transaction.execute(ADD, "queue_count_a", "1")
            started.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(write_and_think())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert database.pool_connections == {"idle": 0, "busy": 0}
    assert await count(database) == 0


async def test_a_frozen_server_costs_a_deadline_and_works_again_when_it_thaws(
    windmill_url: str, postgres: EmbeddedPostgres
) -> None:
    database = open_database(parse_url(windmill_url), QUICK)
    await asyncio.gather(count(database), count(database))
    assert database.pool_connections == {"idle": 2, "busy": 0}
    with frozen(postgres):
        with pytest.raises(DatabaseTimeout) as caught:
            await count(database)
        assert caught.value.reason == "deadline"
        assert database.pool_connections == {"idle": 0, "busy": 0}
        for reason in ("unreachable", "backoff"):
            with pytest.raises(DatabaseUnavailable) as unavailable:
                await count(database)
            assert unavailable.value.reason == reason
    await works_again(database)
    database.close()


async def test_a_deadline_that_passes_between_two_statements_takes_the_connection_along(
    windmill_url: str, windmill: Connection
) -> None:
    """It is terminated and never returned, although the server would answer a ROLLBACK."""
    database = open_database(parse_url(windmill_url), QUICK)

    async def write_and_think() -> None:
        async with database.transaction("think", read_only=False) as transaction:
            await transaction.execute(ADD, "queue_count_a", "1")
            await asyncio.sleep(60)

    with pytest.raises(DatabaseTimeout) as caught:
        await write_and_think()
    assert caught.value.reason == "deadline"
    assert database.pool_connections == {"idle": 0, "busy": 0}
    assert database.generation == 1
    assert await count(database) == 0
    assert database.generation == 2
    database.close()


async def test_a_statement_frozen_halfway_ends_by_our_deadline(windmill_url: str, postgres: EmbeddedPostgres) -> None:
    database = open_database(parse_url(windmill_url), QUICK)

    async def freeze_and_write() -> None:
        async with database.transaction("halfway", read_only=False) as transaction:
            [row] = await transaction.fetch(PID)
            os.kill(row["pid"], signal.SIGSTOP)
            try:
                await transaction.execute(ADD, "queue_count_a", "1")
            finally:
                os.kill(row["pid"], signal.SIGCONT)

    with pytest.raises(DatabaseTimeout):
        await freeze_and_write()
    await works_again(database)
    assert await count(database) == 0
    database.close()


async def test_waiting_for_a_connection_has_an_end_and_a_loop_never_waits_for_requests(
    windmill_url: str, windmill: Connection
) -> None:
    """Field case F15: fifty requests on a locked table."""
    config = DatabaseConfig(statement_timeout_seconds=0.6, lock_timeout_seconds=0.4)
    database = open_database(parse_url(windmill_url), config)

    async def request() -> str:
        try:
            async with database.transaction("request", for_request=True) as transaction:
                await transaction.fetch(COUNT)
        except DatabaseError as error:
            return error.reason
        return "answered"

    async with windmill.transaction():
        await windmill.execute("LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
        requests = [asyncio.create_task(request()) for _ in range(50)]
        async with asyncio.timeout(5):
            while database.pool_connections["busy"] < 1:  # noqa: ASYNC110 -- a pool has no event for this
                await asyncio.sleep(0.005)
        assert database.pool_connections["busy"] == 1
        assert await pid(database) > 0
        reasons = await asyncio.wait_for(asyncio.gather(*requests), 5)
    assert set(reasons) == {"lock_timeout", "pool_exhausted"}
    assert await request() == "answered"
    database.close()


async def test_a_cancelled_wait_for_a_connection_gives_its_place_back(windmill_url: str) -> None:
    database = open_database(parse_url(windmill_url), PATIENT)
    busy = [asyncio.create_task(sleep_in(database)) for _ in range(2)]
    waiting = [asyncio.create_task(count(database)) for _ in range(5)]
    await asyncio.sleep(0.1)
    for task in (*waiting, *busy):
        task.cancel()
    await asyncio.gather(*waiting, *busy, return_exceptions=True)
    assert await asyncio.gather(*(count(database) for _ in range(5))) == [0] * 5
    assert database.pool_connections == {"idle": 2, "busy": 0}
    database.close()


async def test_two_connections_are_enough_and_never_exceeded(
    windmill_url: str, make_role: MakeRole, postgres: EmbeddedPostgres
) -> None:
    """Field case F24."""
    role = await make_role("CONNECTION LIMIT 2")
    database = open_database(target_at(windmill_url, user=role))
    found = await asyncio.gather(*(pid(database) for _ in range(100)))
    assert len(set(found)) == 2
    assert "too many connections for role" not in postgres.read_log().partition(role)[2]
    database.close()


async def test_a_server_without_room_is_left_alone_for_a_while(windmill_url: str, make_role: MakeRole) -> None:
    """Field case F24: at 53300 the product backs off and goes on."""
    role = await make_role("CONNECTION LIMIT 1")
    target = target_at(windmill_url, user=role)
    occupant = await Connector(lambda: target, DatabaseConfig())()
    database = open_database(target)
    for reason in ("connection_limit", "backoff", "backoff"):
        with pytest.raises(DatabaseUnavailable) as caught:
            await pid(database)
        assert caught.value.reason == reason
    await occupant.close()
    await works_again_as(database)
    database.close()


async def works_again_as(database: Database) -> None:
    async def works() -> bool:
        try:
            return await pid(database) > 0
        except DatabaseUnavailable:
            return False

    await eventually(works)


async def test_closing_waits_for_nobody(windmill_url: str, windmill: Connection) -> None:
    """Field case F25: a statement waits for a lock, others wait for a connection."""
    database = open_database(parse_url(windmill_url), PATIENT)
    async with windmill.transaction():
        await windmill.execute("LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
        tasks = [asyncio.create_task(count(database)) for _ in range(5)]
        await asyncio.sleep(0.2)
        database.close()
        outcomes = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 2)
    assert {type(outcome) for outcome in outcomes} == {DatabaseUnavailable}
    assert database.pool_connections == {"idle": 0, "busy": 0}
    with pytest.raises(DatabaseUnavailable) as caught:
        await count(database)
    assert caught.value.reason == "closed"

    async def gone() -> bool:
        return not await sessions_of(windmill)

    await eventually(gone)


async def test_a_connection_that_opens_after_the_close_is_not_kept(windmill_url: str) -> None:
    connector = Connector(lambda: parse_url(windmill_url), DatabaseConfig())
    opened: list[Connection] = []

    async def connect_slowly() -> Connection:
        opened.append(await connector())
        database.close()
        return opened[-1]

    database = Database(connect_slowly, DatabaseConfig())
    with pytest.raises(DatabaseUnavailable) as caught:
        await pid(database)
    assert caught.value.reason == "closed"
    assert opened[0].is_closed()
