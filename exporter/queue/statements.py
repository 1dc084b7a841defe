"""The statements of the queue sampler, and their rows as values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from exporter.database.database import Transaction
from exporter.database.statement import Statement
from exporter.queue.reading import WholeQueue
from exporter.queue.samples import Climbing, Held, HeldSince, NewSample, Sample, parse_value, split_id
from exporter.queue.selection import LastSamples, NewRow
from exporter.queue.values import TagReading, WorkspaceWait

BACKLOG = Statement.load("exporter.queue", "backlog.sql")
LAST_SAMPLES = Statement.load("exporter.queue", "last_samples.sql")

# Parallel workers halve nothing here and double the processor time.
READ_PLANNER: Final = MappingProxyType({"max_parallel_workers_per_gather": "0", "work_mem": "64MB"})

# One statement for all rows of a reading. A held delay is computed here, in exact decimals, so that created_at less the
# value is the head's due time to the microsecond, however long we waited.
INSERT_SAMPLES = Statement(
    "insert_samples",
    """
    INSERT INTO {schema}.metrics (id, value, created_at)
    SELECT new.id,
           CASE WHEN new.head_since_micros IS NULL THEN new.value::jsonb
                ELSE to_jsonb(extract(epoch FROM now()) - new.head_since_micros * 0.000001) END,
           now()
      FROM unnest($1::text[], $2::text[], $3::text[]::bigint[]) AS new (id, value, head_since_micros)
    """,
)


@dataclass(frozen=True, slots=True)
class RecentSeries:
    """The stored series of the last 900 s, and how many unreadable rows were not counted before."""

    last: LastSamples
    unreadable: int


async def read_queue(transaction: Transaction) -> WholeQueue:
    """Everything that waits or runs, at the transaction's now()."""
    rows = await transaction.fetch(BACKLOG)
    return WholeQueue(
        read_at=next(row["since"] for row in rows if row["kind"] == "clock"),
        tags=tuple(
            TagReading(row["name"], row["waiting"], row["since"], row["running"], row["workers"])
            for row in rows
            if row["kind"] == "tag"
        ),
        workspaces=tuple(
            WorkspaceWait(row["name"], row["waiting"], row["since"]) for row in rows if row["kind"] == "workspace"
        ),
    )


async def read_recent_series(
    transaction: Transaction, counted_until: float | None, drained_series: int
) -> RecentSeries:
    """The newest readable sample of every series, of drained ones only the newest `drained_series` and the last 25 s.

    Unreadable rows are counted after `counted_until` (epoch seconds).
    """
    last = {}
    unreadable = 0
    for row in await transaction.fetch(LAST_SAMPLES, counted_until, drained_series):
        if row["id"] is None:
            unreadable = row["unreadable"]
            continue
        key, value = split_id(row["id"]), parse_value(row["value"])
        if key is not None and value is not None:
            last[key] = Sample(row["at"], value)
    return RecentSeries(last, unreadable)


async def insert_samples(transaction: Transaction, rows: Sequence[NewRow]) -> None:
    """Insert all rows of one reading."""
    if rows:
        await transaction.execute(
            INSERT_SAMPLES,
            [row.series_id for row in rows],
            [_stored_text(row.sample) for row in rows],
            [str(round(row.sample.head_since * 1e6)) if isinstance(row.sample, HeldSince) else None for row in rows],
        )


def _stored_text(sample: NewSample) -> str | None:
    match sample:
        case Held(value):
            return json.dumps(value)
        case Climbing(since):
            return f'{{"since": {since:.6f}}}'
        case HeldSince():
            return None
