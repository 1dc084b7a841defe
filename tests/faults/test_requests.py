"""Clients that ask too much, hang up or read slowly: the loops go on, and memory and sessions stay bounded."""

from __future__ import annotations

import asyncio
import io
import json
import socket

import aiohttp
import psutil

from exporter.database.database import Connection
from tests.faults.scene import FLAGS, POOL_SIZE, QUICK, attempts_failed, scene_at
from tests.product import process, scrape, service, working

QUERY = {"targets": [{"target": "queue_count"}, {"target": "queue_delay"}]}
LARGE = "/api/workers/queue_metrics"
MEBIBYTE = 1 << 20
GROWTH_BYTES = 32 * MEBIBYTE
IN_TRANSACTION = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'
   AND clock_timestamp() - state_change > interval '1 second'
"""


async def test_fifty_requests_for_a_locked_table_all_get_an_answer(windmill_url: str) -> None:
    """Field case F15: each by the deadline and in JSON; probes answer meanwhile, and afterwards all is as before."""
    async with scene_at(windmill_url) as scene, service(windmill_url, QUICK) as product:
        [url] = product.urls
        await scene.settled(url)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            async with scene.windmill.transaction():
                await scene.windmill.execute("LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
                asked = [asyncio.create_task(ask(session, url, number)) for number in range(50)]
                while not all(task.done() for task in asked):
                    async with session.get(f"{url}/-/healthy") as response:
                        assert response.status == 200
                    await asyncio.sleep(0.1)
                assert {task.result() for task in asked} == {503}
                assert await scene.sessions() <= POOL_SIZE
            assert await ask(session, url, 0) == 200
        await scene.change()
        await scene.settled(url)


async def ask(session: aiohttp.ClientSession, url: str, number: int) -> int:
    """One request that shares its answer with no other; its status."""
    body = {**QUERY, "maxDataPoints": 100 + number}
    async with asyncio.timeout(15), session.post(f"{url}/grafana/query", json=body) as response:
        answer = await response.json()
        assert response.status == 200 or answer["message"]
        return response.status


async def test_clients_that_hang_up_take_no_connection_along(windmill_url: str) -> None:
    """Five waves that give up while their statements wait: the pool is whole afterwards, and no loop starved."""
    async with scene_at(windmill_url) as scene, service(windmill_url, QUICK) as product:
        [url] = product.urls
        [before] = await scene.settled(url)
        async with aiohttp.ClientSession() as session:
            for _ in range(5):
                async with scene.windmill.transaction():
                    await scene.windmill.execute("LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
                    asked = [asyncio.create_task(ask(session, url, number)) for number in range(20)]
                    await asyncio.sleep(0.2)
                    for task in asked:
                        task.cancel()
                    await asyncio.gather(*asked, return_exceptions=True)
            assert await ask(session, url, 0) == 200
        await scene.change()
        [page] = await scene.settled(url)
        assert attempts_failed(page, "fairness") == attempts_failed(before, "fairness")
        await scene.sessions_bounded()


async def store_many(windmill: Connection) -> None:
    """A hundred thousand stored samples of forty tags, over the last hour."""
    await windmill.execute(
        """
        INSERT INTO metrics (id, value, created_at)
        SELECT 'queue_count_many ' || n % 40, to_jsonb(n % 1000), now() - interval '1 hour' * n / 100000
          FROM generate_series(1, 100000) AS n
        """
    )


async def test_slow_and_huge_requests_bound_memory_sessions_and_transactions(windmill_url: str) -> None:
    """Field case F21: an answer is read by drips while no transaction is open; bodies too large are not even kept."""
    async with scene_at(windmill_url) as scene, process(*FLAGS, environment={"DATABASE_URL": windmill_url}) as product:
        await store_many(scene.windmill)
        port = int(product.url.rpartition(":")[2])
        await read_whole(product.url)
        resident = psutil.Process(product.process.pid)
        before = resident.memory_info().rss
        slow = [await dripping(port) for _ in range(5)]
        async with aiohttp.ClientSession() as session:
            for _ in range(10):
                assert await send(session, product.url, b"[" * (8 * MEBIBYTE)) == 413
                assert await send(session, product.url, b"[" * (MEBIBYTE // 2)) == 400
                nested = json.dumps({"targets": [{"target": "queue_count"}] * 5_000}).encode()
                assert await send(session, product.url, nested) in {200, 400, 413}
                for client in slow:
                    await asyncio.get_running_loop().sock_recv(client, 100)
                assert await scene.windmill.fetchval(IN_TRANSACTION) == 0
                assert await scene.sessions() <= POOL_SIZE
        for client in slow:
            client.close()
        assert resident.memory_info().rss - before < GROWTH_BYTES
        assert working("fairness", "queue")(await scrape(product.url))
        assert "Traceback" not in product.log


async def read_whole(url: str) -> None:
    """The answer that the slow clients ask for, once: what it takes is taken before memory is measured."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}{LARGE}") as response:
        assert response.status == 200
        assert len(await response.read()) > MEBIBYTE


async def dripping(port: int) -> socket.socket:
    """A client that asks for much and has a small window; the test reads a hundred bytes at a time."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", port))
    await loop.sock_sendall(client, f"GET {LARGE} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return client


async def send(session: aiohttp.ClientSession, url: str, body: bytes) -> int:
    """The status of a datasource request with this body; 413 also where the connection closes before all is sent."""
    headers = {"Content-Type": "application/json"}
    try:
        async with session.post(f"{url}/grafana/query", data=io.BytesIO(body), headers=headers) as response:
            return response.status
    except aiohttp.ClientConnectionError:
        return 413
