"""Reads stored series of a window and draws them as they arrive; lists tags. One query for identical requests.

Nothing here holds the event loop for long: between two series drawn it lets others run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from exporter.database.database import Database, Transaction
from exporter.database.statement import Statement
from exporter.errors import DatabaseTimeout
from exporter.queue.render import Window, render
from exporter.queue.samples import Kind, split_id
from exporter.queue.slot_rows import Series, SlotRows
from exporter.queue.vertices import Vertices
from exporter.queue.window import RequestedWindow, resolve
from exporter.single_flight import SingleFlight

__all__ = ["Drawn", "History", "Kind", "Line", "RequestedWindow"]

SERIES = Statement.load("exporter.queue", "series.sql")
NOW = Statement("now", "SELECT date_part('epoch', now()) AS now")

ALL_TAGS = SERIES.with_text("narrowed", "")
SOME_TAGS = SERIES.with_text("narrowed", "AND metrics.id = ANY ($5)")

# The server looks for a client that is gone every so often: without it a query that nobody waits for runs to its end.
PLANNER: Final = MappingProxyType(
    {
        "work_mem": "64MB",
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
        "client_connection_check_interval": "500",
    }
)
DEADLINE_MARGIN_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Line:
    """One drawn series: `vertices` are (epoch milliseconds, value), times never decreasing, values never below 0."""

    kind: Kind
    tag: str
    vertices: Vertices


@dataclass(frozen=True, slots=True)
class Drawn:
    """The lines of a window, tags in code point order. A tag of which everything asked for is 0 is not among them."""

    window: Window
    lines: tuple[Line, ...]


class History:
    """The stored series of Windmill's table `metrics`. Every method raises `DatabaseError` within the deadline."""

    def __init__(self, database: Database, deadline_seconds: float = 25.0) -> None:
        self._database = database
        self._deadline_seconds = deadline_seconds
        self._flights = SingleFlight()

    async def series(
        self, window: RequestedWindow, *, slots: int, kinds: Collection[Kind], tags: Collection[str] | None
    ) -> Drawn:
        """Read and draw `window` in `slots` slots for `tags` (None: all). Raises `BadWindow` too.

        Requests that are identical at one moment share one query, which ends when the last of them is cancelled.
        """
        wanted = frozenset(kinds)
        named = None if tags is None else frozenset(filter(_can_be_stored, tags))
        key = ("series", window, slots, wanted, named)
        return await self._flights.run(key, lambda: self._draw(window, slots, wanted, named))

    async def close(self) -> None:
        """Cancel whatever is still read."""
        await self._flights.close()

    async def _draw(
        self, requested: RequestedWindow, slots: int, kinds: frozenset[Kind], tags: frozenset[str] | None
    ) -> Drawn:
        async with self._reading("queue history") as transaction:
            window = resolve(requested, now=await _now(transaction), slots=slots)
            drawing = _Drawing(window)
            bounds = (window.from_at, window.to_at, window.slot_seconds, [kind.series_id("") for kind in kinds])
            if tags is None:
                await transaction.copy(ALL_TAGS, drawing.take, *bounds)
            elif tags and kinds:
                ids = [kind.series_id(tag) for tag in tags for kind in kinds]
                await transaction.copy(SOME_TAGS, drawing.take, *bounds, ids)
        return Drawn(window, drawing.lines())

    @asynccontextmanager
    async def _reading(self, purpose: str) -> AsyncIterator[Transaction]:
        """A transaction that ends, waiting for a connection included, within the deadline of a request."""
        try:
            async with asyncio.timeout(self._deadline_seconds) as deadline, self._transaction(purpose) as transaction:
                yield transaction
        except TimeoutError:
            if not deadline.expired():
                raise
            raise DatabaseTimeout(f"{purpose}: no answer within its deadline", reason="deadline") from None

    def _transaction(self, purpose: str) -> AbstractAsyncContextManager[Transaction]:
        return self._database.transaction(
            purpose,
            planner=PLANNER,
            statement_seconds=self._deadline_seconds - DEADLINE_MARGIN_SECONDS,
            for_request=True,
        )


class _Drawing:
    """Draws series as their rows arrive."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._rows = SlotRows()
        self._lines: dict[str, list[Line]] = {}

    async def take(self, piece: bytes) -> None:
        """Draw what `piece` completes, a series at a time."""
        for series in self._rows.feed(piece):
            self._draw(series)
            await asyncio.sleep(0)

    def lines(self) -> tuple[Line, ...]:
        """Every line, once all rows have come."""
        for series in self._rows.finish():
            self._draw(series)
        shown = (lines for _, lines in sorted(self._lines.items()) if any(line.vertices.peak > 0 for line in lines))
        return tuple(line for lines in shown for line in lines)

    def _draw(self, series: Series) -> None:
        key = split_id(series.id)
        if key is not None:
            vertices = render(series.carried, series.slots, self._window)
            self._lines.setdefault(key[1], []).append(Line(*key, Vertices(vertices)))


def _can_be_stored(tag: str) -> bool:
    """Whether PostgreSQL could hold `tag` at all; what it could not is no tag, and no error."""
    return "\0" not in tag and not any("\ud800" <= character <= "\udfff" for character in tag)


async def _now(transaction: Transaction) -> float:
    """The database's now() in epoch seconds."""
    [row] = await transaction.fetch(NOW)
    return float(row["now"])
