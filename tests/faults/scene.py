"""A cluster whose every transition and sample is known, so that nothing lost and nothing doubled can be told exactly.

The fairness window is an hour: the set of capped workspaces changes when a test says so, and never by itself.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg

from exporter.config import Config, DatabaseConfig, FairnessConfig, QueueConfig, WebConfig
from exporter.database.database import Connection
from exporter.fairness.values import FairnessMode
from exporter.queue.values import QueueMode
from tests.fairness.replicas import audit_rows, enable, make_noisy, stored_payload
from tests.fairness.scene import add_completed
from tests.product import WAIT_SECONDS, Scrape, eventually
from tests.queue.scene import Job, add_jobs, stored_rows

ENFORCE = FairnessConfig(mode=FairnessMode.ENFORCE)
SAMPLE = QueueConfig(mode=QueueMode.SAMPLE, interval_seconds=1)
WRITING = Config(fairness=ENFORCE, queue=SAMPLE)
# Deadlines that scale with the short intervals: a fault is noticed within a second or two.
QUICK = Config(
    database=DatabaseConfig(connect_timeout_seconds=1, lock_timeout_seconds=0.5, statement_timeout_seconds=1),
    fairness=ENFORCE,
    queue=SAMPLE,
    web=WebConfig(history_deadline_seconds=3),
)
FLAGS = ("--fairness.mode=enforce", "--queue.mode=sample", "--queue.interval-seconds=1")

POOL_SIZE = DatabaseConfig().pool_size
OTHER_SESSIONS = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
FAILURES = "windmill_exporter_collector_failures_total"


def attempts_failed(page: Scrape, collector: str) -> float:
    """Turns that reached for the database and failed; while backing off a turn does not."""
    return sum(
        value
        for (name, labels), value in page.samples.items()
        if name == FAILURES and ("collector", collector) in labels and ("reason", "backoff") not in labels
    )


def failed_for(page: Scrape) -> set[str]:
    """Every reason for which a collector has failed so far."""
    return {
        dict(labels)["reason"]
        for (name, labels), value in page.samples.items()
        if name == FAILURES and value and labels
    }


def down(page: Scrape) -> bool:
    """The page says that the database is away: neither collector succeeds, and `up` is 0."""
    return page.value("windmill_exporter_up") == 0 and not page.succeeds("fairness") and not page.succeeds("queue")


class Scene:
    """`noisy` and `quiet` take turns at being capped; one job waits for each of `tags`."""

    def __init__(self, windmill: Connection) -> None:
        self.windmill = windmill
        self.capped = "noisy"
        self.tags = ["gpu 0"]
        self._audited = [("capped", "noisy")]
        self._weight = 1

    async def lay_out(self) -> None:
        await enable(self.windmill, duration_secs=3600)
        await make_noisy(self.windmill)
        await add_jobs(self.windmill, Job(tag=self.tags[0]))

    async def change(self) -> None:
        """One transition of each workspace, and one more tag with a job that waits."""
        before, self.capped = self.capped, "quiet" if self.capped == "noisy" else "noisy"
        # Ten times what all have taken so far, in rows that fit the window.
        self._weight *= 10
        await add_completed(self.windmill, self.capped, duration_ms=60_000, count=self._weight)
        self.tags.append(f"gpu {len(self.tags)}")
        await add_jobs(self.windmill, Job(tag=self.tags[-1]))
        self._audited += [("uncapped", before), ("capped", self.capped)]

    def shown(self, page: Scrape) -> bool:
        """Whether a page tells the present state."""
        waiting = page.labelled("windmill_queue_waiting_jobs", "tag")
        return (
            page.succeeds("fairness")
            and page.succeeds("queue")
            and page.value("windmill_exporter_up") == 1
            and {tag: number for tag, number in waiting.items() if number} == dict.fromkeys(self.tags, 1)
            and page.value("windmill_fairness_capped", workspace=self.capped) == 1
        )

    async def settled(self, *urls: str) -> Sequence[Scrape]:
        """A page of each replica that tells the present state; the stored rows then hold each change exactly once."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not await self._is_stored():  # noqa: ASYNC110 -- the server has no event for us
                await asyncio.sleep(0.1)
        pages = [await eventually(url, self.shown) for url in urls]
        await self.assert_exact()
        return pages

    async def _is_stored(self) -> bool:
        payload = await stored_payload(self.windmill) or {}
        sampled = {found for found, _ in await stored_rows(self.windmill)}
        return payload.get("overloaded") == [self.capped] and f"queue_count_{self.tags[-1]}" in sampled

    async def assert_exact(self) -> None:
        """Nothing lost and nothing doubled: one audit row a transition, one sample a change."""
        audited = await audit_rows(self.windmill)
        assert Counter(audited) == Counter(self._audited)
        for workspace in ("noisy", "quiet"):
            operations = [operation for operation, resource in audited if resource == workspace]
            assert operations == (["capped", "uncapped"] * len(operations))[: len(operations)]
        stored = await stored_rows(self.windmill)
        assert [row for row in stored if row[0].startswith("queue_count")] == [
            (f"queue_count_{tag}", "1") for tag in self.tags
        ]
        # A delay is stored once, and half a minute later as one that climbs.
        delays = [found for found, value in stored if found.startswith("queue_delay") and "since" not in value]
        assert delays == [f"queue_delay_{tag}" for tag in self.tags]

    async def sessions(self) -> int:
        """Sessions of everybody else in this database."""
        await self.windmill.execute("SELECT pg_stat_clear_snapshot()")
        return int(await self.windmill.fetchval(OTHER_SESSIONS))

    async def sessions_bounded(self, *, replicas: int = 1) -> None:
        """No replica holds more sessions than its pool, however many were lost. Those that ended may take a moment."""
        async with asyncio.timeout(WAIT_SECONDS):
            while await self.sessions() > POOL_SIZE * replicas:  # noqa: ASYNC110 -- see above
                await asyncio.sleep(0.1)


@asynccontextmanager
async def scene_at(url: str) -> AsyncIterator[Scene]:
    """A laid-out scene with a connection of its own, which the test may replace."""
    scene = Scene(await asyncpg.connect(url))
    await scene.lay_out()
    try:
        yield scene
    finally:
        scene.windmill.terminate()


async def recovers(scene: Scene, url: str, before: Scrape) -> Scrape:
    """The page once all is well again: from `before`, when the fault ended, two attempts may fail and no more."""
    [page] = await scene.settled(url)
    for collector in ("fairness", "queue"):
        assert attempts_failed(page, collector) - attempts_failed(before, collector) <= 2
    return page
