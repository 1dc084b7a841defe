"""The winner's database work: the aggregation, and the one short transaction that stores what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from exporter.database import state_rows
from exporter.database.database import Database, Transaction
from exporter.database.statement import Statement
from exporter.errors import DatabaseError
from exporter.fairness.audit import CAPPED_SINCE, transition_rows, write_audit
from exporter.fairness.classify import transitions
from exporter.fairness.payload import PAYLOAD_ROW, build_payload, parse_payload
from exporter.fairness.reading import READING_ROW, StoredReading, build_reading, parse_reading, summed_up
from exporter.fairness.values import FairnessReading, FairnessSettings, Payload, ServiceTimes, WorkspaceUsage

OCCUPANCY = Statement.load("exporter.fairness", "occupancy.sql")

LOCK_READING = Statement(
    "lock_reading",
    "SELECT {value} AS value FROM {schema}.background_task_state AS state WHERE state.name = $1 FOR UPDATE",
).with_text("value", state_rows.value_text(state_rows.MAX_VALUE_BYTES))

STORE_READING = Statement(
    "store_reading",
    """
    INSERT INTO {schema}.background_task_state (name, value, updated_at)
    VALUES ($1, $2::text::jsonb, now())
    ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
    """,
)


@dataclass(frozen=True, slots=True)
class Written:
    """What the winner's transaction stored. `audit_failure` says why rows are owed."""

    reading: FairnessReading
    entered: tuple[str, ...]
    left: tuple[str, ...]
    audit_failure: DatabaseError | None


async def aggregate(database: Database, settings: FairnessSettings, by: str) -> FairnessReading:
    """Read who used how much: one read-only transaction with one statement, without parallel workers."""
    planner = {"max_parallel_workers_per_gather": "0"}
    async with database.transaction("fairness occupancy", planner=planner) as transaction:
        rows = await transaction.fetch(OCCUPANCY, settings.window_seconds)
    return summed_up(
        (
            WorkspaceUsage(
                row["workspace"], row["worker_micros"], ServiceTimes(row["service_jobs"], row["service_ms"] / 1000)
            )
            for row in rows
            if row["workspace"] is not None
        ),
        read_at=rows[0]["read_at"],
        by=by,
        window_seconds=settings.window_seconds,
    )


async def write_decision(
    database: Database, fence: datetime, payload: Payload, reading: FairnessReading, settings: FairnessSettings
) -> Written | None:
    """Store payload, audit rows and reading in one transaction; None when a later cycle has taken over."""
    async with database.transaction("fairness write", read_only=False) as transaction:
        previous_text = await state_rows.hold(transaction, PAYLOAD_ROW, fence)
        if previous_text is None:
            return None
        # An unreadable previous set counts as empty.
        previous = parse_payload(previous_text, target_ppm=0).payload
        entered, left = transitions(previous.overloaded, payload.overloaded)
        stored = await _lock_reading(transaction)
        await state_rows.write_value(transaction, PAYLOAD_ROW, build_payload(payload))
        rows = transition_rows(
            entered, left, at=reading.read_at, settings=settings, total_capped=len(payload.overloaded)
        )
        owed = (*stored.owed, *rows)
        failure = await write_audit(transaction, owed)
        reading = replace(
            reading,
            capped_since=_capped_since(payload, entered, stored, reading.read_at),
            owed=() if failure is None else owed,
            decided=payload,
        )
        await transaction.execute(STORE_READING, READING_ROW, build_reading(reading))
    return Written(reading, entered, left, failure)


async def write_reading(
    database: Database, fence: datetime, reading: FairnessReading, payload: Payload
) -> FairnessReading | None:
    """Store a reading beside another writer's payload. What was stored; None when a later claim has taken over."""
    async with database.transaction("fairness reading", read_only=False) as transaction:
        previous_text = await state_rows.hold(transaction, READING_ROW, fence)
        if previous_text is None:
            return None
        stored = parse_reading(previous_text)
        known = stored.reading.capped_since if stored.reading else {}
        reading = replace(
            reading,
            owed=stored.owed,
            capped_since={name: known[name] for name in payload.overloaded if name in known},
        )
        await state_rows.write_value(transaction, READING_ROW, build_reading(reading))
    return reading


async def capped_since(database: Database, workspaces: frozenset[str]) -> Mapping[str, float]:
    """Since when each workspace is capped, by the audit log; without those that it does not know."""
    async with database.transaction("fairness capped since") as transaction:
        rows = await transaction.fetch(CAPPED_SINCE, list(workspaces))
    return {row["workspace"]: row["since"] for row in rows}


async def _lock_reading(transaction: Transaction) -> StoredReading:
    rows = await transaction.fetch(LOCK_READING, READING_ROW)
    return parse_reading(rows[0]["value"]) if rows else StoredReading()


def _capped_since(payload: Payload, entered: tuple[str, ...], stored: StoredReading, at: float) -> Mapping[str, float]:
    known = stored.reading.capped_since if stored.reading else {}
    since = {name: known[name] for name in payload.overloaded if name in known}
    return MappingProxyType({**since, **dict.fromkeys(entered, at)})
