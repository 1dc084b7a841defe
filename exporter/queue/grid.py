"""Series on one grid of time: exact means and maxima, for whoever sums or averages (queue-metrics.md has the rules)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from exporter.database.database import Transaction
from exporter.database.statement import Statement
from exporter.errors import BadRequest
from exporter.queue.render import STALE_SECONDS, Window
from exporter.queue.samples import Kind, split_id

MAX_STEPS: Final = 1000
MAX_TAGS: Final = 50

READABLE: Final = Statement.load("exporter.queue", "readable.sql")
GRID: Final = Statement.load("exporter.queue", "grid.sql").with_statement(
    "readable", READABLE.with_text("narrowed", "AND metrics.id = ANY ($5::text[])")
)


@dataclass(frozen=True, slots=True)
class GridRow:
    """One tag in one step: the step's begin in epoch milliseconds, the mean over its time, the highest value."""

    time_ms: int
    tag: str
    mean: float
    max: float


@dataclass(frozen=True, slots=True)
class Grid:
    """Equal steps from `from_ms` on; the last one is cut short at `to_ms`."""

    from_ms: int
    to_ms: int
    step_ms: int

    @property
    def steps(self) -> int:
        """Their number."""
        return -((self.from_ms - self.to_ms) // self.step_ms)

    def begin_ms(self, step: int) -> int:
        """Where a step begins."""
        return self.from_ms + step * self.step_ms

    def seconds(self, step: int) -> float:
        """How long a step is."""
        return (min(self.begin_ms(step + 1), self.to_ms) - self.begin_ms(step)) / 1000


def make_grid(window: Window, step_seconds: float) -> Grid:
    """The grid of `window`. Raises `BadRequest` for more than 1,000 steps, or none."""
    window_seconds = window.to_at - window.from_at
    if not window_seconds / MAX_STEPS <= step_seconds < float("inf"):
        expected = f"expected {window_seconds / MAX_STEPS:g} seconds at least ({MAX_STEPS} steps in the window)"
        raise BadRequest(f"step: {expected}, got {step_seconds:g}", field="step")
    return Grid(window.from_ms, window.to_ms, min(round(step_seconds * 1000), window.to_ms - window.from_ms))


async def read_grid(transaction: Transaction, grid: Grid, kind: Kind, tags: Collection[str]) -> tuple[GridRow, ...]:
    """Every step of every tag that was ever above 0 in the window, by time and tag."""
    from_at = grid.from_ms / 1000
    rows = await transaction.fetch(
        GRID,
        from_at - STALE_SECONDS,
        grid.to_ms / 1000,
        from_at,
        grid.step_ms / 1000,
        [kind.series_id(tag) for tag in tags],
    )
    cells: dict[str, dict[int, tuple[float, float]]] = {}
    for row in rows:
        if (key := split_id(row["id"])) is not None:
            cells.setdefault(key[1], {})[row["step"]] = (row["area"], row["highest"])
    return tuple(_filled(grid, cells))


def _filled(grid: Grid, cells: Mapping[str, Mapping[int, tuple[float, float]]]) -> Iterable[GridRow]:
    """A row for each step and tag: where a series drew nothing it was 0."""
    shown = sorted(tag for tag, drawn in cells.items() if any(highest for _, highest in drawn.values()))
    for step in range(grid.steps):
        begin, seconds = grid.begin_ms(step), grid.seconds(step)
        for tag in shown:
            area, highest = cells[tag].get(step, (0.0, 0.0))
            yield GridRow(begin, tag, area / seconds, highest)
