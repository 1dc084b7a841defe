"""The server stops, crashes, freezes, is full, or asks for another password: the same process goes on, and tells."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import asyncpg
import pytest

from exporter.demo.postgres import EmbeddedPostgres
from tests.database.servers import server_with_passwords
from tests.faults.scene import FLAGS, QUICK, Scene, down, failed_for, recovers, scene_at
from tests.faults.servers import frozen, load_windmill, own_server
from tests.product import eventually, process, scrape, service, working

pytestmark = pytest.mark.may_block("starts and stops servers of its own")

# The promise is a tenth of a second; the rest is for machines that have a lot to do. A statement would take longer.
PROMPT_SECONDS = 1.0


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedPostgres]:
    with own_server() as server:
        await load_windmill(server)
        yield server


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["stopped", "crashed"])
async def test_a_server_that_goes_and_comes_back(server: EmbeddedPostgres, how: signal.Signals) -> None:
    """The restart loses nothing, and the changes of the meantime are found."""
    async with scene_at(server.url()) as scene, service(server.url(), QUICK) as product:
        [url] = product.urls
        await scene.settled(url)
        await asyncio.to_thread(server.stop, how)
        page = await eventually(url, down)
        assert page.value("windmill_fairness_capped", workspace="noisy") == 1, "the last reading, while it is fresh"
        await asyncio.to_thread(server.start)
        before = await scrape(url)
        scene.windmill = await asyncpg.connect(server.url())
        await scene.change()
        await recovers(scene, url, before)
        await scene.change()
        await scene.settled(url)
        await scene.sessions_bounded()


async def test_a_restart_between_two_ticks_is_not_even_noticed(server: EmbeddedPostgres) -> None:
    """A dead idle connection is replaced without a failure."""
    async with scene_at(server.url()) as scene, service(server.url(), QUICK) as product:
        [url] = product.urls
        [before] = await scene.settled(url)
        await scene.windmill.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND backend_type = 'client backend' AND state = 'idle'"
        )
        await scene.change()
        [page] = await scene.settled(url)
        assert failed_for(page) == failed_for(before) == set()


async def test_a_frozen_server_delays_no_probe_and_is_used_again_when_it_thaws(server: EmbeddedPostgres) -> None:
    """Scrapes and probes answer at once, requests for stored series by their deadline, and the same process goes on."""
    async with scene_at(server.url()) as scene, service(server.url(), QUICK) as product:
        [url] = product.urls
        await scene.settled(url)
        await scene.change()
        with frozen(server):
            async with aiohttp.ClientSession() as session:
                asked = [asyncio.create_task(query(session, url)) for _ in range(10)]
                until = time.monotonic() + 3
                while time.monotonic() < until:
                    for path in ("/metrics", "/-/healthy", "/-/ready"):
                        async with asyncio.timeout(PROMPT_SECONDS), session.get(url + path) as response:
                            assert response.status == 200
                            await response.read()
                    await asyncio.sleep(0.1)
                assert {status for status, _ in await asyncio.gather(*asked)} == {503}
            await eventually(url, down)
            before = await scrape(url)
        page = await recovers(scene, url, before)
        assert failed_for(page) & {"deadline", "unreachable"}
        await scene.sessions_bounded()


async def query(session: aiohttp.ClientSession, url: str) -> tuple[int, object]:
    """One request for a stored series, which must be answered in JSON by the history's own deadline."""
    body = {"targets": [{"target": "queue_count"}]}
    async with asyncio.timeout(10), session.post(f"{url}/grafana/query", json=body) as response:
        return response.status, await response.json()


async def test_a_server_without_room_is_left_alone_until_there_is_some(server: EmbeddedPostgres) -> None:
    """Field case F24: at 53300 the product backs off, goes on, and says why."""
    async with scene_at(server.url()) as scene, service(server.url(), QUICK) as product:
        [url] = product.urls
        await scene.settled(url)
        await scene.windmill.execute("CREATE ROLE greedy LOGIN")
        await scene.windmill.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        greedy = await fill(server)
        page = await eventually(url, lambda page: "connection_limit" in failed_for(page) and down(page))
        for connection in greedy:
            await connection.close()
        await scene.change()
        await recovers(scene, url, page)
        await scene.sessions_bounded()


async def fill(server: EmbeddedPostgres) -> list[asyncpg.Connection[asyncpg.Record]]:
    """Take connections until there is none, also of those that the product had, within its next ticks."""
    taken = []
    refused = 0
    while refused < 30:
        try:
            taken.append(await asyncpg.connect(server.url()))
        except asyncpg.TooManyConnectionsError:
            refused += 1
            await asyncio.sleep(0.02)
    return taken


async def test_a_password_that_changes_in_a_mounted_file_costs_no_restart(tmp_path: Path) -> None:
    """Field case F13: the old sessions end, the old password is refused, and the file holds the new one."""
    with server_with_passwords() as server:
        async with scene_at(await load_windmill(server)) as scene:
            await scene.windmill.execute("CREATE ROLE rotated LOGIN SUPERUSER PASSWORD 'hunter1'")
            file = tmp_path / "url"
            text = f"postgres://rotated:{{}}@127.0.0.1:{server.port}/postgres?sslmode=disable\n"
            file.write_text(text.format("hunter1"))
            async with process(*FLAGS, environment={"DATABASE_URL_FILE": str(file)}) as product:
                await scene.settled(product.url)
                await rotate(scene, "hunter2")
                page = await eventually(product.url, lambda page: "authentication" in failed_for(page) and down(page))
                file.write_text(text.format("hunter2"))
                await scene.change()
                await recovers(scene, product.url, page)
                file.write_text(text.format("hunter3"))
                await rotate(scene, "hunter3")
                await scene.change()
                [page] = await scene.settled(product.url)
                assert working("fairness", "queue")(page)
                await scene.sessions_bounded()
            assert "hunter" not in product.log
            assert "Traceback" not in product.log


async def rotate(scene: Scene, password: str) -> None:
    await scene.windmill.execute(f"ALTER ROLE rotated PASSWORD '{password}'")
    await scene.windmill.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rotated'")
