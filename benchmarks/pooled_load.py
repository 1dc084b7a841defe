"""Two replicas behind PgBouncer in transaction mode, its settings stock, under load: no error, and nothing left behind.

Run as `python -m benchmarks.pooled_load --seconds 300`. Needs PgBouncer. Prints what was done; exits 1 on any error,
and when a pooled connection holds a changed setting, a lock or a prepared statement at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import aiohttp
import asyncpg

from exporter.demo.postgres import EmbeddedPostgres
from tests.database.pooler import pgbouncer
from tests.faults.scene import FLAGS, Scene, failed_for, scene_at
from tests.faults.servers import load_windmill
from tests.product import process, scrape

POOL_SIZE = 2
CLIENTS = 8
PAUSE_SECONDS = 0.05
CHANGE_SECONDS = 5.0
QUERIES = (
    ("POST", "/grafana/query", {"targets": [{"target": "queue_count"}, {"target": "queue_delay"}]}),
    ("GET", "/api/workers/queue_metrics_series?window_secs=3600", None),
    ("GET", "/api/workers/workspace_fairness_events", None),
    ("GET", "/metrics", None),
)

# What a session must not keep. Name and encoding of the client are the pooler's own: it sets them for each client.
LEFT_BEHIND = """
SELECT (SELECT coalesce(string_agg(name || '=' || setting, ', ' ORDER BY name), '') FROM pg_settings
         WHERE source = 'session' AND name NOT IN ('application_name', 'client_encoding')) AS settings,
       (SELECT count(*) FROM pg_prepared_statements) AS statements,
       (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory') AS locks,
       pg_backend_pid() AS pid
"""


@dataclass
class Tally:
    """What the clients saw."""

    statuses: Counter[int] = field(default_factory=Counter)
    slowest_seconds: float = 0.0


async def ask(urls: list[str], tally: Tally, until: float, number: int) -> None:
    """One client: requests in turn to each replica."""
    async with aiohttp.ClientSession() as session:
        while time.monotonic() < until:
            number += 1
            method, path, body = QUERIES[number % len(QUERIES)]
            began = time.monotonic()
            async with session.request(method, urls[number % len(urls)] + path, json=body) as response:
                await response.read()
                tally.statuses[response.status] += 1
            tally.slowest_seconds = max(tally.slowest_seconds, time.monotonic() - began)
            await asyncio.sleep(PAUSE_SECONDS)


async def change(scene: Scene, until: float) -> None:
    """Transitions while the load goes on; the weight of each is ten times the last, which bounds their number."""
    for _ in range(4):
        if time.monotonic() + CHANGE_SECONDS > until:
            return
        await scene.change()
        await asyncio.sleep(CHANGE_SECONDS)


async def left_behind(port: int) -> list[str]:
    """What each pooled connection still holds, in words."""
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable"
    clients = [await asyncpg.connect(url, statement_cache_size=0) for _ in range(POOL_SIZE)]
    for client in clients:
        await client.execute("BEGIN")  # each holds one of the pool's connections from here on
    rows = [(await client.fetch(LEFT_BEHIND))[0] for client in clients]
    for client in clients:
        await client.execute("COMMIT")
        await client.close()
    assert len({row["pid"] for row in rows}) == POOL_SIZE
    return [str(dict(row)) for row in rows if row["settings"] or row["statements"] or row["locks"]]


async def load(seconds: float) -> list[str]:
    """Run the load and print its figures; every complaint."""
    with EmbeddedPostgres() as server, pgbouncer(server.port, pool_size=POOL_SIZE) as port:
        environment = {"DATABASE_URL": f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable"}
        async with (
            scene_at(await load_windmill(server)) as scene,
            process(*FLAGS, environment=environment) as one,
            process(*FLAGS, environment=environment) as two,
        ):
            urls = [one.url, two.url]
            await scene.settled(*urls)
            tally, until = Tally(), time.monotonic() + seconds
            async with asyncio.TaskGroup() as group:
                for number in range(CLIENTS):
                    group.create_task(ask(urls, tally, until, number))
                group.create_task(change(scene, until))
            await scene.settled(*urls)
            reasons = set[str]().union(*map(failed_for, [await scrape(url) for url in urls]))
        complaints = await left_behind(port)
    requests = tally.statuses.total()
    print(f"{requests} requests in {seconds:g} s from {CLIENTS} clients, answers {dict(tally.statuses)}")
    print(f"slowest {tally.slowest_seconds * 1000:.0f} ms; transitions and samples exact for {len(scene.tags)} changes")
    print(
        f"failed turns: {sorted(reasons) or 'none'}; left on {POOL_SIZE} pooled connections: {complaints or 'nothing'}"
    )
    if set(tally.statuses) != {200}:
        complaints.append(f"answers {dict(tally.statuses)}")
    complaints += [f"a collector failed: {reason}" for reason in sorted(reasons)]
    return complaints


def main() -> int:
    parser = argparse.ArgumentParser(description="two replicas behind PgBouncer in transaction mode")
    parser.add_argument("--seconds", type=float, default=300)
    complaints = asyncio.run(load(parser.parse_args().seconds))
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
