"""What the web asks the database for on a request, in one value: stored series and audit rows."""

from __future__ import annotations

from dataclasses import dataclass

from exporter.fairness.events import EventLog
from exporter.queue.history import History


@dataclass(frozen=True, slots=True)
class Readers:
    """The readers of one database, closed by whoever made them."""

    history: History
    events: EventLog

    async def close(self) -> None:
        """End whatever they still read."""
        await self.history.close()
        await self.events.close()
