"""The latest transitions into and out of the capped set, from both of Windmill's audit tables."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from exporter.database.database import Database
from exporter.database.shared_reads import SharedReads
from exporter.database.statement import Statement
from exporter.database.stored_json import decode_json

DEADLINE_SECONDS: Final = 10.0
EVENTS: Final = Statement.load("exporter.fairness", "events.sql")


@dataclass(frozen=True, slots=True)
class Event:
    """One transition: when (epoch seconds), `workspace_fairness.capped` or `.uncapped`, whose, and its details."""

    at: float
    operation: str
    workspace: str
    parameters: Mapping[str, object] | None


class EventLog:
    """The audit log as requests read it: identical ones at one moment share one query.

    `require` raises where the database does not offer `requirements.AUDIT_READ`: hidden rows would look like a log
    without transitions.
    """

    def __init__(self, database: Database, require: Callable[[], Awaitable[None]] | None = None) -> None:
        self._database = database
        self._reads = SharedReads(database, require)

    async def latest(self) -> tuple[Event, ...]:
        """The latest 200 caps and the latest 200 uncaps, newest first. Raises `DatabaseError` within 10 s."""
        return await self._reads.run("events", DEADLINE_SECONDS, lambda: events(self._database))

    async def close(self) -> None:
        """Cancel whatever is still read."""
        await self._reads.close()


async def events(database: Database) -> tuple[Event, ...]:
    """The latest 200 caps and the latest 200 uncaps, newest first. Raises `DatabaseError`."""
    async with database.transaction("fairness events", for_request=True) as transaction:
        rows = await transaction.fetch(EVENTS)
    return tuple(Event(row["at"], row["operation"], row["workspace"], _parameters(row["parameters"])) for row in rows)


def _parameters(text: str | None) -> Mapping[str, object] | None:
    """The details as Windmill writes them, an object; None for anything else."""
    found = None if text is None else decode_json(text)
    return found if isinstance(found, dict) else None
