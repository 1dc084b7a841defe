"""The way to the writer fails over, flaps, vanishes or swallows an answer: nothing is lost, and nothing done twice."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

import asyncpg
import pytest

from exporter.database.database import Connection
from exporter.demo.postgres import EmbeddedPostgres
from tests.database.proxy import Mode, TcpProxy
from tests.faults.scene import QUICK, down, failed_for, recovers, scene_at
from tests.faults.servers import Replica, load_windmill, own_server
from tests.product import eventually, scrape, service

pytestmark = pytest.mark.may_block("starts and stops servers of its own")

CHANGES = 3


class Flapping(TcpProxy):
    """Sends alternate connections to each of `ports`, and every one to the only port while there is one."""

    def __init__(self, *ports: int) -> None:
        self.turn_to(*ports)
        super().__init__(ports[0])

    def turn_to(self, *ports: int) -> None:
        self._ports = itertools.cycle(ports)

    @property
    def target_port(self) -> int:
        return next(self._ports)

    @target_port.setter
    def target_port(self, port: int) -> None:
        """The base class sets its one port; here `turn_to` does."""


@pytest.fixture
async def primary() -> AsyncIterator[EmbeddedPostgres]:
    with own_server() as server:
        await load_windmill(server)
        yield server


async def test_a_failover_to_a_standby_that_is_promoted_late(primary: EmbeddedPostgres) -> None:
    """The address leads to a read-only server for a while, which is then the writer; the old one is gone."""
    with Replica(primary) as standby:
        async with (
            Flapping(primary.port) as proxy,
            scene_at(primary.url()) as scene,
            service(at(primary, proxy), QUICK) as product,
        ):
            [url] = product.urls
            await scene.settled(url)
            proxy.turn_to(standby.port)
            proxy.cut()
            await scene.change()
            page = await eventually(url, lambda page: "read_only" in failed_for(page))
            assert page.value("windmill_exporter_up") == 1, "the database answers, although it takes no writes"
            await asyncio.to_thread(primary.stop)  # sends the standby all that it has
            scene.windmill = await asyncpg.connect(standby.url())
            await scene.windmill.execute("SELECT pg_promote()")
            await recovers(scene, url, await scrape(url))
            await scene.change()
            await scene.settled(url)
            await scene.sessions_bounded()


async def test_an_address_that_flaps_between_writer_and_standby(primary: EmbeddedPostgres) -> None:
    """Field case F19: every other connection meets a read-only server while workspaces are capped and uncapped."""
    with Replica(primary) as standby:
        async with (
            Flapping(primary.port) as proxy,
            scene_at(primary.url()) as scene,
            service(at(primary, proxy), QUICK) as product,
        ):
            [url] = product.urls
            await scene.settled(url)
            other = await asyncpg.connect(primary.url())
            proxy.turn_to(primary.port, standby.port)
            for _ in range(CHANGES):
                proxy.cut()
                await scene.change()
                settled = asyncio.create_task(scene.settled())
                while not settled.done():
                    await asyncio.sleep(0.3)
                    await payload_is_audited(other)
                    proxy.cut()
                await settled
            proxy.turn_to(primary.port)
            proxy.cut()
            await scene.change()
            [page] = await scene.settled(url)
            assert failed_for(page) <= {"read_only", "connection_lost", "unreachable"}
            await other.close()
            await scene.sessions_bounded()


async def payload_is_audited(windmill: Connection) -> None:
    """No moment at which the payload names a workspace whose row is missing."""
    unaudited = await windmill.fetchval(
        """
        SELECT count(*)
          FROM background_task_state AS task, jsonb_array_elements_text(task.value -> 'overloaded') AS capped (name)
         WHERE task.name = 'workspace_fairness'
           AND (SELECT a.operation FROM audit_partitioned AS a
                 WHERE a.resource = capped.name ORDER BY a.id DESC LIMIT 1)
               IS DISTINCT FROM 'workspace_fairness.capped'
        """
    )
    assert unaudited == 0


@pytest.mark.parametrize("mode", [Mode.HOLD, Mode.REFUSE])
async def test_a_route_that_swallows_everything(mode: Mode, windmill_url: str) -> None:
    """Field case F17: nothing arrives any more, and a second connection is held, or refused."""
    port = int(windmill_url.rpartition(":")[2].partition("/")[0])
    async with (
        TcpProxy(port) as proxy,
        scene_at(windmill_url) as scene,
        service(through(windmill_url, proxy), QUICK) as product,
    ):
        [url] = product.urls
        await scene.settled(url)
        proxy.freeze()
        await proxy.set_mode(mode)
        await scene.change()
        page = await eventually(url, down)
        assert failed_for(page) & {"deadline", "unreachable"}
        proxy.thaw()
        await proxy.set_mode(Mode.FORWARD)
        await recovers(scene, url, page)
        proxy.cut()
        await scene.change()
        await scene.settled(url)
        await scene.sessions_bounded()


async def test_answers_to_commits_that_are_lost_lead_to_no_second_row(windmill_url: str) -> None:
    """The server has committed, and nobody knows: what was written must be found, not written again."""
    port = int(windmill_url.rpartition(":")[2].partition("/")[0])
    async with (
        TcpProxy(port) as proxy,
        scene_at(windmill_url) as scene,
        service(through(windmill_url, proxy), QUICK) as product,
    ):
        [url] = product.urls
        await scene.settled(url)
        for marker in (b"workspace_fairness.capped", b"INSERT INTO", b"COMMIT"):
            accepted = proxy.accepted
            proxy.lose_answer_to(marker)
            await scene.change()
            await scene.settled(url)
            assert proxy.accepted > accepted, "the connection was cut"
        await scene.sessions_bounded()


def at(server: EmbeddedPostgres, proxy: TcpProxy) -> str:
    return through(server.url(), proxy)


def through(url: str, proxy: TcpProxy) -> str:
    """`url` with the proxy's port."""
    before, _, rest = url.rpartition(":")
    return f"{before}:{proxy.port}/{rest.partition('/')[2]}"
