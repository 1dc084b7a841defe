"""Reads stored series of a window and draws them as they arrive; lists tags. One query for identical requests.

Nothing here holds the event loop for long: between two series drawn it lets others run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from exporter.database.capabilities import Requirement
from exporter.database.database import Database, Transaction
from exporter.database.shared_reads import SharedReads
from exporter.database.statement import Statement
from exporter.errors import BadRequest
from exporter.queue.grid import MAX_TAGS, READABLE, GridRow, make_grid, read_grid
from exporter.queue.render import STALE_SECONDS, Window, render
from exporter.queue.samples import Kind, split_id
from exporter.queue.slot_rows import Series, SlotRows
from exporter.queue.stored import StoredRows, StoredSeries
from exporter.queue.vertices import Vertices
from exporter.queue.window import MAX_SLOTS, MAX_WINDOW_MS, RequestedWindow, resolve

__all__ = ["Drawn", "GridRow", "History", "Kind", "Line", "RequestedWindow", "StoredSeries"]

NOW: Final = Statement("now", "SELECT date_part('epoch', now()) AS now")
SERIES_IDS: Final = Statement.load("exporter.queue", "series_ids.sql")
SERIES: Final = Statement.load("exporter.queue", "series.sql").with_statement("readable", READABLE)
ALL_SERIES: Final = SERIES.with_text("narrowed", "")
ONE_KIND: Final = {
    Kind.COUNT: SERIES.with_text("narrowed", r"AND metrics.id LIKE 'queue\_count\_%'"),
    Kind.DELAY: SERIES.with_text("narrowed", r"AND metrics.id LIKE 'queue\_delay\_%'"),
}
SOME_SERIES: Final = SERIES.with_text("narrowed", "AND metrics.id = ANY ($5)")

# client_connection_check_interval: without it a query that nobody waits for any more runs to its end.
PLANNER: Final = MappingProxyType(
    {
        "work_mem": "64MB",
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
        "client_connection_check_interval": "500",
    }
)
# One hash aggregation, never a sort of every row, whatever the planner believes about the number of series.
SERIES_PLANNER: Final = MappingProxyType({**PLANNER, "enable_sort": "off"})
DEADLINE_MARGIN_SECONDS: Final = 2.0
QUICK_DEADLINE_SECONDS: Final = 10.0
HISTORY_REQUIREMENTS: Final = (Requirement("metrics", select=("id", "value", "created_at")),)


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

    def __init__(
        self,
        database: Database,
        deadline_seconds: float = 25.0,
        *,
        require: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`require` raises where the database lacks one of `HISTORY_REQUIREMENTS`, and finds out where they are."""
        self._database = database
        self._deadline_seconds = deadline_seconds
        self._reads = SharedReads(database, require)

    async def series(
        self, window: RequestedWindow, *, slots: int, kinds: Collection[Kind], tags: Collection[str] | None
    ) -> Drawn:
        """Read and draw `window` in `slots` slots for `tags` (None: all). Raises `BadWindow` too.

        Requests that are identical at one moment share one query, which ends when the last of them is cancelled.
        """
        wanted = frozenset(kinds)
        named = None if tags is None else frozenset(filter(_can_be_stored, tags))
        key = ("series", window, slots, wanted, named)
        return await self._reads.run(key, self._deadline_seconds, lambda: self._draw(window, slots, wanted, named))

    async def tags(self) -> tuple[str, ...]:
        """Every tag with stored series, in code point order."""
        return await self._reads.run("tags", QUICK_DEADLINE_SECONDS, self._list_tags)

    async def grid(
        self, window: RequestedWindow, step_seconds: float | None, kind: Kind, tags: Collection[str] | None
    ) -> tuple[GridRow, ...]:
        """Means over time and maxima of `window` in equal steps (None: 120 of them), by time and tag (None: all tags).

        Raises `BadRequest` too: for more than 1,000 steps, and for more than 50 tags.
        """
        named = None if tags is None else frozenset(filter(_can_be_stored, tags))
        key = ("grid", window, step_seconds, kind, named)
        return await self._reads.run(
            key, self._deadline_seconds, lambda: self._read_grid(window, step_seconds, kind, named)
        )

    async def stored(self) -> tuple[StoredSeries, ...]:
        """The readable rows of 14 days by series, in code point order. Raises `TooManyRows` above 200,000."""
        return await self._reads.run("stored", self._deadline_seconds, self._read_stored)

    async def close(self) -> None:
        """Cancel whatever is still read."""
        await self._reads.close()

    async def _draw(
        self, requested: RequestedWindow, slots: int, kinds: frozenset[Kind], tags: frozenset[str] | None
    ) -> Drawn:
        async with self._reading("queue history", SERIES_PLANNER) as transaction:
            window = resolve(requested, now=await _now(transaction), slots=slots)
            return await draw_window(transaction, window, kinds, tags)

    async def _list_tags(self) -> tuple[str, ...]:
        async with self._reading("queue tags") as transaction:
            return await _tags(transaction, tuple(Kind))

    async def _read_grid(
        self, requested: RequestedWindow, step_seconds: float | None, kind: Kind, tags: frozenset[str] | None
    ) -> tuple[GridRow, ...]:
        async with self._reading("queue grid") as transaction:
            window = resolve(requested, now=await _now(transaction), slots=MAX_SLOTS)
            grid = make_grid(window, step_seconds or window.slot_seconds)
            wanted = await _tags(transaction, (kind,)) if tags is None else tags
            if len(wanted) > MAX_TAGS:
                raise BadRequest(f"tags: expected {MAX_TAGS} at the most, got {len(wanted)}", field="tags")
            return await read_grid(transaction, grid, kind, wanted)

    async def _read_stored(self) -> tuple[StoredSeries, ...]:
        rows: StoredRows | None = None
        while rows is None or rows.more:
            async with self._reading("queue rows") as transaction:
                if rows is None:
                    now = await _now(transaction)
                    rows = StoredRows(now - MAX_WINDOW_MS / 1000, now)
                await rows.read_page(transaction)
        return rows.finish()

    def _reading(self, purpose: str, planner: Mapping[str, str] = PLANNER) -> AbstractAsyncContextManager[Transaction]:
        seconds = self._deadline_seconds - DEADLINE_MARGIN_SECONDS
        return self._database.transaction(purpose, planner=planner, statement_seconds=seconds, for_request=True)


async def draw_window(
    transaction: Transaction, window: Window, kinds: Collection[Kind], tags: Collection[str] | None
) -> Drawn:
    """Read and draw exactly `window`, as the rows arrive."""
    drawing = _Drawing(window)
    bounds = (window.from_at - STALE_SECONDS, window.to_at, window.from_at, window.slot_seconds)
    if tags is not None:
        if ids := [kind.series_id(tag) for tag in tags for kind in kinds]:
            await transaction.copy(SOME_SERIES, drawing.take, *bounds, ids)
    elif kinds:
        statement = ALL_SERIES if len(kinds) > 1 else ONE_KIND[next(iter(kinds))]
        await transaction.copy(statement, drawing.take, *bounds)
    return Drawn(window, drawing.lines())


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


async def _tags(transaction: Transaction, kinds: Collection[Kind]) -> tuple[str, ...]:
    """The tags of the stored series of these kinds, in code point order."""
    keys = [split_id(row["id"]) for row in await transaction.fetch(SERIES_IDS)]
    return tuple(sorted({key[1] for key in keys if key is not None and key[0] in kinds}))


async def _now(transaction: Transaction) -> float:
    """The database's now() in epoch seconds."""
    [row] = await transaction.fetch(NOW)
    return float(row["now"])
