"""The queue collector: one replica a cycle reads the queue, stores what changed, and shares its reading with the others."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

from exporter.config import QueueConfig
from exporter.database import state_rows
from exporter.database.capabilities import Requirement
from exporter.database.database import Database, Transaction
from exporter.queue.claims import QUEUE_ROW, claim_cycle, is_due, see_state, slack_seconds
from exporter.queue.reading import (
    bounded,
    build_reading,
    drained_tags,
    is_fresh,
    parse_reading,
    remember,
)
from exporter.queue.selection import Selection, select_rows
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


class Sampler:
    """One tick at a time; the caller keeps the cadence of `interval_seconds` and checks `requirements` first.

    In mode `observe` nothing is ever written. `replica` names this process in shared readings. `monotonic` only ages
    snapshots: every decision is made in the database's time.
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
        self._replica = replica
        self._monotonic = monotonic
        self._backlog_at: dict[str, float] = {}
        self.interval_seconds = config.interval_seconds
        self.requirements = SAMPLE_REQUIREMENTS if config.mode is QueueMode.SAMPLE else OBSERVE_REQUIREMENTS

    async def tick(self) -> QueueOutcome:
        """Run one cycle. Raises `DatabaseError`; what was not committed then is decided anew by the next tick."""
        if self._config.mode is QueueMode.OFF:
            return QueueOutcome(None)
        if self._config.mode is QueueMode.OBSERVE:
            return await self._observe()
        async with self._database.transaction("queue state") as transaction:
            seen = await see_state(transaction, QUEUE_ROW)
        stored = parse_reading(seen.value)
        if is_due(seen, self.interval_seconds):
            fence = await claim_cycle(self._database, "queue claim", QUEUE_ROW, seen, self.interval_seconds)
            if fence is not None:
                return await self._sample(fence, stored)
        return QueueOutcome(self._adopt(stored, seen.now))

    async def _observe(self) -> QueueOutcome:
        async with self._reading_transaction("queue observe") as transaction:
            seen = await see_state(transaction, QUEUE_ROW)
            stored = parse_reading(seen.value)
            limit = self.interval_seconds + slack_seconds(self.interval_seconds)
            if stored is not None and is_fresh(stored, seen.now, limit):
                return QueueOutcome(self._adopt(stored, seen.now))
            reading, _, recent = await self._read(transaction, stored)
        return QueueOutcome(self._adopt(reading, reading.read_at))

    async def _sample(self, fence: datetime, stored: QueueReading | None) -> QueueOutcome:
        """Read, decide and write, each in a transaction of its own; the claim that `fence` stands for is committed."""
        async with self._reading_transaction("queue read") as transaction:
            reading, selection, recent = await self._read(transaction, stored)
        snapshot = self._adopt(reading, reading.read_at)
        async with self._database.transaction("queue write", read_only=False) as transaction:
            if await state_rows.hold(transaction, QUEUE_ROW, fence) is None:
                return QueueOutcome(None, selection.results(SampleResult.FENCED), skipped_tags=selection.long_tags)
            await insert_samples(transaction, selection.rows)
            await state_rows.write_value(transaction, QUEUE_ROW, build_reading(reading))
        results = selection.results(SampleResult.STORED)
        return QueueOutcome(snapshot, results, recent.unreadable, selection.long_tags)
