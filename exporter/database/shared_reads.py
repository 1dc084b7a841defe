"""What requests read: identical ones at one moment share one query, each ends within a deadline, one is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable

from exporter.database.database import Database, run_once_more
from exporter.database.transaction import Result
from exporter.errors import DatabaseTimeout
from exporter.single_flight import SingleFlight


class SharedReads:
    """Reads of one `database`. `require` raises where it lacks what they need, and finds out where its tables are."""

    def __init__(self, database: Database, require: Callable[[], Awaitable[None]] | None = None) -> None:
        self._database = database
        self._require = require
        self._flights = SingleFlight()

    async def run(self, key: Hashable, seconds: float, read: Callable[[], Awaitable[Result]]) -> Result:
        """The result of `read`, or of an equal one (by `key`) that is under way. The last one that leaves cancels it.

        Raises `DatabaseError` after `seconds` at the latest, waiting for a connection included.
        """
        return await self._flights.run(key, lambda: self._limited(seconds, read))

    async def close(self) -> None:
        """Cancel whatever is still read."""
        await self._flights.close()

    async def _limited(self, seconds: float, read: Callable[[], Awaitable[Result]]) -> Result:
        try:
            async with asyncio.timeout(seconds) as deadline:
                if self._require is not None:
                    await self._require()
                return await run_once_more(self._database, read)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise DatabaseTimeout(f"no answer from the database within {seconds:g} s", reason="deadline") from None
