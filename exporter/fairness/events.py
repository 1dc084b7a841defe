"""The latest transitions into and out of the capped set, from both of Windmill's audit tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from exporter.database.capabilities import Requirement
from exporter.database.database import Database
from exporter.database.statement import Statement
from exporter.database.stored_json import decode_json
from exporter.fairness.audit import CAPPED, UNCAPPED

EVENTS: Final = Statement.load("exporter.fairness", "events.sql")
COLUMNS: Final = ("workspace_id", "id", "timestamp", "operation", "resource", "parameters")
EVENTS_REQUIREMENTS: Final = tuple(
    Requirement(table, select=COLUMNS, operations=(CAPPED, UNCAPPED)) for table in ("audit_partitioned", "audit")
)


@dataclass(frozen=True, slots=True)
class Event:
    """One transition: when (epoch seconds), `workspace_fairness.capped` or `.uncapped`, whose, and its details."""

    at: float
    operation: str
    workspace: str
    parameters: Mapping[str, object] | None


async def events(database: Database) -> tuple[Event, ...]:
    """The latest 200 caps and the latest 200 uncaps, newest first. Raises `DatabaseError`."""
    async with database.transaction("fairness events", for_request=True) as transaction:
        rows = await transaction.fetch(EVENTS)
    return tuple(Event(row["at"], row["operation"], row["workspace"], _parameters(row["parameters"])) for row in rows)


def _parameters(text: str | None) -> Mapping[str, object] | None:
    """The details as Windmill writes them, an object; None for anything else."""
    found = None if text is None else decode_json(text)
    return found if isinstance(found, dict) else None
