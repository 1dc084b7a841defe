"""Five replicas as processes: the one that wins is killed, or stands still, again and again; the fleet goes on."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack

import asyncpg
import psutil
import pytest

from exporter.config import Config, QueueConfig
from exporter.database.database import Connection
from exporter.queue.values import QueueMode
from tests.fairness.replicas import stored_payload
from tests.faults.scene import FLAGS, WRITING, Scene, scene_at
from tests.faults.servers import load_windmill, own_server
from tests.product import Process, eventually, process, scrape, service, working

REPLICAS = 5
MEASURED_SECONDS = 10  # the longest interval: each loop of each replica is in it
BLOCKED = """
SELECT client_port FROM pg_stat_activity
 WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name LIKE 'windmill-exporter% write'
"""


async def winner(windmill: Connection, fleet: list[Process]) -> Process:
    """The process whose write waits for the lock, told by the port that its session comes from."""
    async with asyncio.timeout(20):
        while True:
            port = await windmill.fetchval(BLOCKED)
            for product in fleet:
                connections = psutil.Process(product.process.pid).net_connections("tcp")
                if port in {connection.laddr.port for connection in connections}:
                    return product
            await asyncio.sleep(0.02)


async def test_winners_that_are_killed_or_stand_still_cost_no_row_and_add_none(windmill_url: str) -> None:
    """Each of them in the middle of what it does: behind a lock that the winner waits for."""
    async with AsyncExitStack() as stack, scene_at(windmill_url) as scene:
        fleet = [
            await stack.enter_async_context(process(*FLAGS, environment={"DATABASE_URL": windmill_url}))
            for _ in range(REPLICAS)
        ]
        await scene.settled(*(product.url for product in fleet))
        locking = await asyncpg.connect(windmill_url)
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGKILL):
            victim = await strike_winner(scene, locking, fleet, number)
            fleet.remove(victim)
            await scene.settled(*(product.url for product in fleet))
            if number is signal.SIGSTOP:
                victim.process.send_signal(signal.SIGCONT)
                fleet.append(victim)
                await scene.settled(*(product.url for product in fleet))
        assert all("Traceback" not in product.log for product in fleet)
        await locking.close()
        await scene.sessions_bounded(replicas=len(fleet))
        assert (await stored_payload(scene.windmill))["overloaded"] == [scene.capped]


async def strike_winner(scene: Scene, locking: Connection, fleet: list[Process], number: signal.Signals) -> Process:
    """A change, and the signal for the replica that has decided what follows from it and cannot write it yet."""
    async with locking.transaction():
        await locking.execute("LOCK TABLE audit_partitioned, metrics IN SHARE MODE")
        await scene.change()
        victim = await winner(scene.windmill, fleet)
        victim.process.send_signal(number)
        if number is signal.SIGKILL:
            await victim.process.wait()
    return victim


@pytest.mark.may_block("starts a server of its own")
async def test_an_idle_fleet_hardly_talks_to_the_database() -> None:
    """Field case F52: two transactions a second over three replicas at their own intervals, however often scraped."""
    config = Config(fairness=WRITING.fairness, queue=QueueConfig(mode=QueueMode.SAMPLE))
    with own_server({"log_statement": "all"}) as server:
        url = await load_windmill(server)
        async with service(url, config) as one, service(url, config) as two, service(url, config) as three:
            for each in (one, two, three):
                await eventually(each.urls[0], working("fairness", "queue"))
            await asyncio.sleep(5)  # what only a start asks for is over
            before = server.read_log().count("BEGIN TRANSACTION")
            for _ in range(MEASURED_SECONDS):
                await asyncio.sleep(1)
                await asyncio.gather(*(scrape(each.urls[0]) for each in (one, two)))
            log = server.read_log()
    at_the_edges = 3  # one turn of each replica may fall just inside
    assert log.count("BEGIN TRANSACTION") - before <= 2 * MEASURED_SECONDS + at_the_edges
    assert "INSERT INTO public.metrics" not in log
    assert "INSERT INTO public.audit" not in log
