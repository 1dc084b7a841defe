"""Five replicas as processes: the one that wins is killed, or stands still, again and again; the fleet goes on."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack

from exporter.config import Config, QueueConfig
from exporter.database.database import Connection
from exporter.queue.values import QueueMode
from tests.faults.scene import FLAGS, WRITING, Scene, scene_at
from tests.fairness.replicas import stored_payload
from tests.product import Process, process, scrape, service

REPLICAS = 5
READING_BY = "SELECT value ->> 'by' FROM background_task_state WHERE name = 'windmill_exporter_fairness'"


def replica_of(product: Process) -> str:
    """The name under which a process claims, from its first line."""
    [line] = [line for line in product.lines if "msg=listening" in line]
    return line.partition("replica=")[2].split()[0]


async def winner(windmill: Connection, fleet: list[Process]) -> Process:
    """The process that took the last reading, while one of the fleet did."""
    async with asyncio.timeout(20):
        while True:
            name = await windmill.fetchval(READING_BY)
            for product in fleet:
                if replica_of(product) == name:
                    return product
            await asyncio.sleep(0.1)


async def test_winners_that_are_killed_or_stand_still_cost_no_row_and_add_none(windmill_url: str) -> None:
    """Each of them in the middle of what it does: behind a lock that the winner waits for."""
    async with AsyncExitStack() as stack, scene_at(windmill_url) as scene:
        fleet = [
            await stack.enter_async_context(process(*FLAGS, environment={"DATABASE_URL": windmill_url}))
            for _ in range(REPLICAS)
        ]
        await scene.settled(*(product.url for product in fleet))
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGKILL):
            victim = await winner(scene.windmill, fleet)
            await change_while_held(scene, victim, number)
            fleet.remove(victim)
            await scene.settled(*(product.url for product in fleet))
            if number is signal.SIGSTOP:
                victim.process.send_signal(signal.SIGCONT)
                fleet.append(victim)
                await scene.settled(*(product.url for product in fleet))
        assert all("Traceback" not in product.log for product in fleet)
        await scene.sessions_bounded(replicas=len(fleet))
        assert (await stored_payload(scene.windmill))["overloaded"] == [scene.capped]


async def change_while_held(scene: Scene, victim: Process, number: signal.Signals) -> None:
    """A change, and the signal while nobody can write what follows from it."""
    blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    async with scene.windmill.transaction():
        await scene.change()
        await scene.windmill.execute("LOCK TABLE audit_partitioned, metrics IN SHARE MODE")
        async with asyncio.timeout(10):
            while not await scene.windmill.fetchval(blocked):  # noqa: ASYNC110 -- the server has no event for us
                await asyncio.sleep(0.02)
        victim.process.send_signal(number)


async def test_an_idle_fleet_hardly_talks_to_the_database(windmill: Connection, windmill_url: str) -> None:
    """Field case F52: two transactions a second over three replicas at their own intervals, however often scraped."""
    committed = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    config = Config(fairness=WRITING.fairness, queue=QueueConfig(mode=QueueMode.SAMPLE))
    async with service(windmill_url, config) as one, service(windmill_url, config) as two, service(windmill_url, config):
        await asyncio.sleep(2)
        before = await windmill.fetchval(committed)
        for _ in range(10):
            await asyncio.sleep(1)
            await asyncio.gather(*(scrape(each.urls[0]) for each in (one, two)))
        await windmill.execute("SELECT pg_stat_clear_snapshot()")
        own = 3
        assert await windmill.fetchval(committed) - before <= 2 * 10 + own
    assert await windmill.fetchval("SELECT count(*) FROM metrics") == 0
