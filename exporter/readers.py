"""What the web asks the database for on a request, in one value: stored series and audit rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from exporter.database.capabilities import Requirement
from exporter.fairness.events import EventLog
from exporter.fairness.requirements import AUDIT_READ
from exporter.queue.history import HISTORY_REQUIREMENTS, History

READER_REQUIREMENTS: Final[Mapping[str, tuple[Requirement, ...]]] = MappingProxyType(
    {"history": HISTORY_REQUIREMENTS, "events": AUDIT_READ}
)


@dataclass(frozen=True, slots=True)
class Readers:
    """The readers of one database, closed by whoever made them."""

    history: History
    events: EventLog

    async def close(self) -> None:
        """End whatever they still read."""
        await self.history.close()
        await self.events.close()
