"""The retention collector: one replica, rarely, deletes the samples that are older than `queue.retention_days`."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from exporter.config import QueueConfig
from exporter.database.capabilities import Requirement
from exporter.database.database import Database
from exporter.database.statement import Statement
from exporter.queue.claims import RETENTION_ROW, claim_cycle, is_due, see_state
from exporter.queue.values import QueueMode

DELETE_EXPIRED = Statement.load("exporter.queue", "retention.sql").with_statement(
    "series_ids", Statement.load("exporter.queue", "series_ids.sql")
)

# 2,000 tags at their busiest write 11.5 million rows a day; this deletes up to 14.4 million, in batches of about 20 ms.
INTERVAL_SECONDS: Final = 600.0
BATCH_ROWS: Final = 5000
MAX_BATCHES: Final = 20

# A bitmap would collect all expired rows of a series for each batch; a scan of the whole table is never right here.
PLANNER: Final = MappingProxyType({"enable_bitmapscan": "off", "enable_seqscan": "off"})

RETENTION_REQUIREMENTS: Final = (
    Requirement("metrics", select=("id", "created_at", "ctid"), delete=True),
    Requirement(
        "background_task_state",
        select=("name", "value", "updated_at"),
        insert=("name", "value", "updated_at"),
        update=("updated_at",),
    ),
)


def requirements(config: QueueConfig) -> tuple[Requirement, ...]:
    """Everything that the collector `retention` needs under `config`; nothing outside of mode `sample`."""
    return RETENTION_REQUIREMENTS if config.mode is QueueMode.SAMPLE else ()


class Retention:
    """Deletes in bounded batches, each committed alone; deleting twice is harmless, so that nothing is fenced."""

    name = "retention"
    interval_seconds = INTERVAL_SECONDS

    def __init__(self, database: Database, config: QueueConfig, batch_rows: int = BATCH_ROWS) -> None:
        self._database = database
        self._config = config
        self._batch_rows = batch_rows
        self.requirements = requirements(config)

    async def tick(self) -> int:
        """Delete expired samples if no replica did lately; the number of rows deleted. Raises `DatabaseError`."""
        if self._config.mode is not QueueMode.SAMPLE:
            return 0
        async with self._database.transaction("retention state") as transaction:
            seen = await see_state(transaction, RETENTION_ROW)
        if not is_due(seen, self.interval_seconds):
            return 0
        if await claim_cycle(self._database, "retention claim", RETENTION_ROW, seen, self.interval_seconds) is None:
            return 0
        deleted = 0
        for _ in range(MAX_BATCHES):
            batch = await self._delete_batch()
            deleted += batch
            if batch < self._batch_rows:
                break
        return deleted

    async def _delete_batch(self) -> int:
        async with self._database.transaction("retention", read_only=False, planner=PLANNER) as transaction:
            return await transaction.execute(DELETE_EXPIRED, self._config.retention_days, self._batch_rows)
