"""Every statement that the product runs, as it runs it, with its median time: `python -m benchmarks.statements`.

500,000 completed, 2,000 live and 40,000 queued jobs on 7 tags, 100 to 200 completions a second; a million stored rows,
400,000 of them ours in 200 series over 14 days; 50,000 dead workers. Times are the client's: one round trip and the
rows, without BEGIN and COMMIT.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

import asyncpg

from exporter.conditions import Conditions
from exporter.config import DatabaseConfig, FairnessConfig, FairnessPins, QueueConfig
from exporter.database.capability_check import CapabilityCheck
from exporter.database.database import Connection, Database
from exporter.database.statement import Statement
from exporter.database.transaction import Transaction
from exporter.demo.postgres import EmbeddedPostgres
from exporter.errors import TooManyRows
from exporter.fairness.events import EventLog
from exporter.fairness.gate import Cadence
from exporter.fairness.refresh import Refresher
from exporter.fairness.requirements import requirements as fairness_requirements
from exporter.fairness.store import capped_since
from exporter.fairness.values import FairnessMode
from exporter.queue.history import History, RequestedWindow
from exporter.queue.retention import Retention
from exporter.queue.sampler import Sampler
from exporter.queue.sampler import requirements as queue_requirements
from exporter.queue.samples import Kind
from exporter.queue.values import QueueMode
from tests.fairness.rows import lay_out_history, lay_out_present
from tests.sources import WINDMILL_SCHEMA

ROUNDS = 9
DAY_MS = 86_400_000

OTHER_ROWS = """
INSERT INTO metrics (id, value, created_at)
SELECT 'other_' || n % 5000, to_jsonb(n), now() - n * interval '1.9 seconds' FROM generate_series(1, 600000) AS n;
INSERT INTO metrics (id, value, created_at)
SELECT CASE n % 2 WHEN 0 THEN 'queue_count_tag ' ELSE 'queue_delay_tag ' END || n / 2 % 100, to_jsonb(n % 50),
       now() - n * interval '3 seconds'
  FROM generate_series(1, 400000) AS n;
INSERT INTO worker_ping (worker, worker_instance, ping_at, custom_tags)
SELECT 'dead ' || n, 'host', now() - interval '1 hour', '{tag-1}' FROM generate_series(1, 50000) AS n;
INSERT INTO worker_ping (worker, worker_instance, custom_tags)
SELECT 'live ' || n, 'host', '{tag-1,tag-2,tag-3}' FROM generate_series(1, 40) AS n;
INSERT INTO global_settings (name, value) VALUES ('workspace_fairness_enabled', 'true');
"""

# So that each reading finds every heartbeat due.
AGE_SAMPLES = r"UPDATE metrics SET created_at = created_at - interval '10 minutes' WHERE id LIKE 'queue\_%\_tag-%'"

Result = TypeVar("Result")
Times: TypeAlias = dict[str, list[float]]


def record(times: Times) -> None:
    """From now on every statement's time in milliseconds is added to `times` under its name."""
    for method in ("fetch", "execute", "copy"):
        setattr(Transaction, method, timed(getattr(Transaction, method), times))


def timed(run: Callable[..., Awaitable[Result]], times: Times) -> Callable[..., Awaitable[Result]]:
    async def measured(self: Transaction, statement: Statement, *arguments: object) -> Result:
        begun = time.perf_counter()
        try:
            return await run(self, statement, *arguments)
        finally:
            times[statement.name].append((time.perf_counter() - begun) * 1000)

    return measured


async def refresh(database: Database, cap_percent: int) -> None:
    """One cycle that this replica wins; `cap_percent` 1 caps everybody, 100 nobody."""
    config = FairnessConfig(mode=FairnessMode.ENFORCE, settings=FairnessPins(enabled=True, max_percent=cap_percent))
    refresher = Refresher(
        database,
        config,
        replica="bench",
        conditions=Conditions(),
        require=lambda: asyncio.sleep(0),
        require_audit=lambda: asyncio.sleep(0),
        monotonic=time.monotonic,
        cadence=Cadence(capped=0, idle=0, claim_guard=0, reading=0, slack=0),
    )
    await refresher.tick()


async def measure(url: str) -> None:
    connection = await asyncpg.connect(url, statement_cache_size=0)
    await connection.execute(WINDMILL_SCHEMA.read_text())
    await lay_out_history(connection, completed=500_000, live=2_000, queued=20_000, stuck=20_000)
    await connection.execute(OTHER_ROWS)
    await lay_out_present(connection, recent=7_000, live=0)
    await connection.execute("VACUUM ANALYZE")

    async def connect() -> Connection:
        return await asyncpg.connect(url, statement_cache_size=0)

    database = Database(connect, DatabaseConfig())
    sample = QueueConfig(mode=QueueMode.SAMPLE)
    wanted = {
        "fairness": fairness_requirements(FairnessConfig(mode=FairnessMode.ENFORCE)),
        "queue": queue_requirements(sample),
    }
    times: Times = defaultdict(list)
    record(times)
    history, events = History(database), EventLog(database)
    for number in range(ROUNDS):
        await CapabilityCheck(database, wanted).learn()
        await refresh(database, 1 if number % 2 else 100)
        await Sampler(database, sample, "bench").tick()
        await connection.execute("UPDATE background_task_state SET updated_at = now() - interval '1 hour'")
        await connection.execute(AGE_SAMPLES)
        await events.latest()
        await capped_since(database, frozenset({"tenant-1"}))
        await history.tags()
        await history.grid(RequestedWindow(length_ms=DAY_MS), None, Kind.COUNT, ["tag 1", "tag 2", "tag 3"])
    report(times)
    for days in (1, 14):
        times.clear()
        for _ in range(ROUNDS):
            window = RequestedWindow(length_ms=days * DAY_MS)
            await history.series(window, slots=120, kinds=tuple(Kind), tags=None)
            await history.series(window, slots=120, kinds=(Kind.COUNT,), tags=["tag 1"])
        every, one = (statistics.median(times["series"][first::2]) for first in (0, 1))
        print(f"series, {days} days: every tag {every:.1f} ms, one tag {one:.1f} ms")
    times.clear()
    with contextlib.suppress(TooManyRows):
        await history.stored()
    retention = Retention(database, QueueConfig(mode=QueueMode.SAMPLE, retention_days=13))
    print(f"retention deleted {await retention.tick():,} rows")
    report(times)
    await connection.close()


def report(times: Times) -> None:
    for name, measured in sorted(times.items()):
        print(f"{name:<22}{len(measured):>5} times{statistics.median(measured):>9.2f} ms")


if __name__ == "__main__":
    with EmbeddedPostgres(options={"shared_buffers": "512MB", "maintenance_work_mem": "256MB"}) as server:
        asyncio.run(measure(server.url()))
