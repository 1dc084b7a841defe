"""A fleet in every state that a panel or an alert shows, on real databases, scraped by a real Prometheus.

Cluster `windmill`: one replica enforces and samples, one shadows, one fails a collector and refused a configuration,
one is gone. Cluster `blind` cannot reach its database; in cluster `stale` nobody renews the decision.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from aiohttp import ClientSession

from exporter.config import Config, FairnessConfig, QueueConfig
from exporter.database.database import Connection
from exporter.fairness.values import FairnessMode, RefreshOutcome, RefreshResult
from exporter.queue.values import QueueMode
from exporter.service import Service
from tests.dashboards.committed import FOLDER
from tests.fairness.scene import add_completed, add_running
from tests.product import eventually, service, working
from tests.prometheus import first_answer, free_port, prometheus
from tests.queue.scene import Job, add_jobs, add_worker

READS = QueueConfig(interval_seconds=1)
ENFORCING = Config(
    fairness=FairnessConfig(mode=FairnessMode.ENFORCE), queue=QueueConfig(mode=QueueMode.SAMPLE, interval_seconds=1)
)
SHADOWING = Config(queue=READS)
BROKEN = Config(fairness=FairnessConfig(settings_relation="nowhere"), queue=READS)

TOO_LONG_TO_STORE = "t" * 250
WAITING = {"gpu": 3, "deno": 4, TOO_LONG_TO_STORE: 1}
"""Jobs waiting by tag. Nobody serves the first one."""

# Jobs that run go on pinging, jobs complete all the time, workers live.
GO_ON = """
UPDATE v2_job_runtime SET ping = now();
UPDATE worker_ping SET ping_at = now();
UPDATE v2_job_completed SET completed_at = now() - interval '1 second',
       started_at = now() - interval '1 second' - make_interval(secs => duration_ms / 1000.0);
"""


async def lay_out_load(connection: Connection) -> None:
    """A noisy workspace holds nine of ten workers; the quiet one and it have jobs waiting for over ten minutes."""
    await connection.execute(
        "INSERT INTO global_settings (name, value) VALUES ('workspace_fairness_enabled', 'true')",
    )
    for workspace, jobs in (("noisy", 9), ("quiet", 1)):
        for _ in range(jobs):
            await add_running(connection, workspace, started_ago=60)
    await add_completed(connection, "noisy", duration_ms=34_000)
    await add_completed(connection, "quiet", duration_ms=1_000)
    for tag, jobs in WAITING.items():
        for number in range(jobs):
            await add_jobs(connection, Job(tag=tag, due=700 + number, workspace="quiet" if number % 2 else "noisy"))
    await add_worker(connection, "worker-1", ["deno", TOO_LONG_TO_STORE])


async def lay_out_stale_decision(url: str) -> None:
    """Fairness is enabled, and the decision is ten minutes old."""
    connection = await asyncpg.connect(url)
    await connection.execute(
        "INSERT INTO global_settings (name, value) VALUES ('workspace_fairness_enabled', 'true')",
    )
    await connection.execute(
        """
        INSERT INTO background_task_state (name, value, updated_at)
        VALUES ('workspace_fairness', '{"overloaded": [], "admission_ppm": 10000}', now() - interval '10 minutes')
        """
    )
    await connection.close()


@dataclass(frozen=True)
class Fleet:
    """A replica of cluster `windmill`, and a client of the Prometheus that scrapes all of them."""

    url: str
    session: ClientSession


@asynccontextmanager
async def running_fleet(windmill: Connection, url: str, stale_url: str, folder: Path) -> AsyncIterator[Fleet]:
    """Everything running, scraped at least twice in its final state."""
    await lay_out_load(windmill)
    await lay_out_stale_decision(stale_url)
    async with AsyncExitStack() as stack:
        enforcing = await stack.enter_async_context(service(url, ENFORCING))
        shadowing = await stack.enter_async_context(service(url, SHADOWING))
        broken = await stack.enter_async_context(service(url, BROKEN))
        stale = await stack.enter_async_context(service(stale_url, SHADOWING))
        blind = await stack.enter_async_context(service(f"postgres://nobody@127.0.0.1:{free_port()}/windmill"))
        going = AsyncExitStack()
        gone = await going.enter_async_context(service(url, SHADOWING))
        jobs = {"windmill": (enforcing, shadowing, broken, gone), "blind": (blind,), "stale": (stale,)}
        await stack.enter_async_context(load_going_on(windmill))
        await eventually(enforcing.urls[0], working("fairness", "queue", "retention"))
        session = await stack.enter_async_context(prometheus(folder, configuration(jobs)))
        # A counter that rises before its first scrape never increases.
        await first_answer(session, f"count(windmill_exporter_build_info) == {sum(map(len, jobs.values()))}")
        await going.aclose()
        refuse_configuration_and_audit_rows(broken)
        await first_answer(session, f'up{{instance="{address(gone)}"}} == 0')
        await first_answer(session, 'windmill_fairness_would_cap{workspace="noisy"} == 1')
        await first_answer(session, "increase(windmill_fairness_audit_failures_total[15m]) > 0")
        yield Fleet(enforcing.urls[0], session)


@asynccontextmanager
async def load_going_on(connection: Connection) -> AsyncIterator[None]:
    """Jobs go on running and completing meanwhile; nobody else may use `connection`."""

    async def go_on() -> None:
        while True:
            await connection.execute(GO_ON)
            await asyncio.sleep(0.5)

    task = asyncio.create_task(go_on())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def refuse_configuration_and_audit_rows(replica: Service) -> None:
    """What cannot be laid out in a database without breaking the other replicas, said to the replica's own metrics."""
    replica._own.record_reload(successful=False, now_epoch=0.0)
    replica._own.record_refresh(RefreshOutcome(RefreshResult.WON, audit_failures=1))


def address(replica: Service) -> str:
    """Host and port, as Prometheus labels the instance."""
    return replica.urls[0].removeprefix("http://")


def configuration(jobs: Mapping[str, Sequence[Service]]) -> str:
    """Scrape everything every second, with the committed rules."""
    return json.dumps(
        {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(path) for path in sorted((FOLDER / "rules").glob("*.yaml"))],
            "scrape_configs": [
                {"job_name": name, "static_configs": [{"targets": [address(replica) for replica in replicas]}]}
                for name, replicas in jobs.items()
            ],
        }
    )
