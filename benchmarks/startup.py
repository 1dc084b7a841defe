"""From the start of the process to the first scrape with values, and what the sidecar then weighs.

Prints the start against a bare interpreter that imports the same libraries, in turn: a noisy machine shows in both.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time

import asyncpg
import psutil

from exporter.demo.postgres import EmbeddedPostgres
from tests.product import eventually, process, working
from tests.sources import WINDMILL_SCHEMA

RUNS = 5
IDLE_SECONDS = 30
BARE = "import aiohttp.web, asyncpg, msgspec, prometheus_client, yaml"


def bare_seconds() -> float:
    """An interpreter that imports what we import, and nothing more."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", BARE], check=True)  # noqa: S603 -- our own interpreter and text
    return time.perf_counter() - begun


async def first_scrape_seconds(url: str) -> float:
    """Until `/metrics` has a value of every collector."""
    begun = time.perf_counter()
    async with process(environment={"DATABASE_URL": url}) as product:
        await eventually(product.url, working("fairness", "queue"))
        return time.perf_counter() - begun


async def idle(url: str) -> tuple[float, float]:
    """Resident megabytes and the share of one core, over half a minute of an idle cluster."""
    async with process(environment={"DATABASE_URL": url}) as product:
        await eventually(product.url, working("fairness", "queue"))
        watched = psutil.Process(product.process.pid)
        before = sum(watched.cpu_times()[:2])
        await asyncio.sleep(IDLE_SECONDS)
        used = sum(watched.cpu_times()[:2]) - before
        return watched.memory_info().rss / 1e6, used / IDLE_SECONDS


async def measure(url: str) -> None:
    """Lay out Windmill's tables, then measure in turn."""
    connection = await asyncpg.connect(url)
    await connection.execute(WINDMILL_SCHEMA.read_text())
    await connection.close()
    bare, ours = [], []
    for _ in range(RUNS):
        bare.append(bare_seconds())
        ours.append(await first_scrape_seconds(url))
    ratio = statistics.median(ours) / statistics.median(bare)
    print(f"start to first scrape: {statistics.median(ours):.2f} s, {ratio:.1f} times the bare imports")
    megabytes, core = await idle(url)
    print(f"idle: {megabytes:.1f} MB resident, {core:.2%} of a core")


def main() -> None:
    """Run the benchmark on an embedded server."""
    with EmbeddedPostgres() as server:
        asyncio.run(measure(server.url()))


if __name__ == "__main__":
    main()
