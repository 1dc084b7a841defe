"""The queue collector: one replica a cycle reads the queue, stores what changed, and shares its reading."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Final

from exporter.config import QueueConfig
from exporter.database import state_rows
from exporter.database.capabilities import Requirement
from exporter.database.database import Database, Transaction
from exporter.queue.claims import QUEUE_ROW, StateSeen, claim_cycle, is_due, see_state, slack_seconds
from exporter.queue.reading import (
    WholeQueue,
    bounded,
    build_reading,
    drained_tags,
    is_fresh,
    parse_reading,
    remember,
)
from exporter.queue.samples import Kind
from exporter.queue.selection import LastSamples, select_rows
from exporter.queue.statements import READ_PLANNER, RecentSeries, insert_samples, read_queue, read_recent_series
from exporter.queue.values import QueueMode, QueueOutcome, QueueReading, QueueSnapshot, SampleResult

STATE_COLUMNS: Final = ("name", "value", "updated_at")
READS: Final = (
    Requirement("v2_job_queue", select=("tag", "priority", "workspace_id", "running", "scheduled_for")),
    Requirement("worker_ping", select=("worker", "ping_at", "custom_tags")),
)
OBSERVE_REQUIREMENTS: Final = (
    *READS,
    Requirement("metrics", select=("id", "value", "created_at")),
    Requirement("background_task_state", select=STATE_COLUMNS),
)
SAMPLE_REQUIREMENTS: Final = (
    *READS,
    Requirement("metrics", select=("id", "value", "created_at"), insert=("id", "value", "created_at")),
    Requirement("background_task_state", select=STATE_COLUMNS, insert=STATE_COLUMNS, update=("value", "updated_at")),
)


def requirements(config: QueueConfig) -> tuple[Requirement, ...]:
    """Everything that the collector `queue` needs under `config`; nothing when it is off."""
    by_mode = {QueueMode.OFF: (), QueueMode.SAMPLE: SAMPLE_REQUIREMENTS}
    return by_mode.get(config.mode, OBSERVE_REQUIREMENTS)


class Sampler:
    """One tick at a time; the caller keeps the cadence of `interval_seconds` and checks `requirements` first.

    For the modes `observe`, in which nothing is ever written, and `sample`. `replica` names this process in shared
    readings. `monotonic` only ages snapshots: every decision is made in the database's time.
    """

    name = "queue"

    def __init__(
        self,
        database: Database,
        config: QueueConfig,
        replica: str,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._config = config
        self._replica = replica.encode("utf-8", "replace").decode()[:255]
        self._monotonic = monotonic
        self._backlog_at: dict[str, float] = {}
        self._counted_until: float | None = None
        self.interval_seconds = config.interval_seconds
        self.requirements = requirements(config)

    async def tick(self) -> QueueOutcome:
        """Run one cycle. Raises `DatabaseError`; what was not committed then is decided anew by the next tick."""
        if self._config.mode is QueueMode.OBSERVE:
            return await self._observe()
        async with self._database.transaction("queue state") as transaction:
            seen = await see_state(transaction, QUEUE_ROW)
        stored = parse_reading(seen.value)
        if is_due(seen, self.interval_seconds):
            fence = await claim_cycle(self._database, "queue claim", QUEUE_ROW, seen, self.interval_seconds)
            if fence is not None:
                return await self._sample(fence, seen, stored)
        return QueueOutcome(self._adopt(stored, seen.now))

    async def _observe(self) -> QueueOutcome:
        async with self._reading_transaction("queue observe") as transaction:
            seen = await see_state(transaction, QUEUE_ROW)
            stored = parse_reading(seen.value)
            limit = self.interval_seconds + slack_seconds(self.interval_seconds)
            if stored is not None and is_fresh(stored, seen.now, limit):
                return QueueOutcome(self._adopt(stored, seen.now))
            queue, recent = await self._read(transaction, seen.now, stored)
        self._counted_until = queue.read_at
        snapshot = self._adopt(self._reading(queue, recent.last), queue.read_at)
        return QueueOutcome(snapshot, unreadable_samples=recent.unreadable)

    async def _sample(self, fence: datetime, seen: StateSeen, stored: QueueReading | None) -> QueueOutcome:
        """Read, decide and write, each in a transaction of its own; the claim that `fence` stands for is committed."""
        async with self._reading_transaction("queue read") as transaction:
            queue, recent = await self._read(transaction, seen.now, stored)
        reading = self._reading(queue, recent.last)
        snapshot = self._adopt(reading, queue.read_at)
        selection = select_rows(queue, recent.last, self._config.max_stored_tags)
        async with self._database.transaction("queue write", read_only=False) as transaction:
            if await state_rows.hold(transaction, QUEUE_ROW, fence) is None:
                return QueueOutcome(None, selection.results(SampleResult.FENCED), skipped_tags=selection.long_tags)
            await insert_samples(transaction, selection.rows)
            await state_rows.write_value(transaction, QUEUE_ROW, build_reading(reading))
        self._counted_until = queue.read_at
        return QueueOutcome(snapshot, selection.results(SampleResult.STORED), recent.unreadable, selection.long_tags)

    def _reading_transaction(self, purpose: str) -> AbstractAsyncContextManager[Transaction]:
        return self._database.transaction(purpose, isolation="REPEATABLE READ", planner=READ_PLANNER)

    async def _read(
        self, transaction: Transaction, now: float, stored: QueueReading | None
    ) -> tuple[WholeQueue, RecentSeries]:
        """Backlog and stored series of one snapshot. Whoever wrote `stored` counted the unreadable rows up to then."""
        counted = [self._counted_until, None if stored is None else stored.read_at]
        counted_until = max((at for at in counted if at is not None and at <= now), default=None)
        drained_series = len(Kind) * self._config.max_stored_tags
        return await read_queue(transaction), await read_recent_series(transaction, counted_until, drained_series)

    def _reading(self, queue: WholeQueue, last: LastSamples) -> QueueReading:
        backlog_at = dict(self._backlog_at)
        for (_, tag), sample in last.items():
            backlog_at[tag] = max(sample.at, backlog_at.get(tag, 0.0))
        limit = self._config.max_stored_tags
        return bounded(
            queue,
            by=self._replica,
            known={tag for _, tag in last},
            drained=drained_tags(queue, backlog_at, limit),
            limit=limit,
        )

    def _adopt(self, reading: QueueReading | None, now: float) -> QueueSnapshot | None:
        """The snapshot of `reading` as seen at `now` (database epoch seconds), which is this moment."""
        if reading is None or not is_fresh(reading, now, math.inf):
            return None
        self._backlog_at = remember(self._backlog_at, reading, self._config.max_stored_tags)
        return QueueSnapshot(
            mode=self._config.mode,
            now=now,
            observed_monotonic=self._monotonic(),
            interval_seconds=self.interval_seconds,
            reading=reading,
        )
