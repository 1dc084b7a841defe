"""The stored rows themselves, in bounded pages: for clients that know Windmill's own endpoint."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from exporter.database.database import Transaction
from exporter.database.statement import Statement
from exporter.errors import TooManyRows
from exporter.queue.grid import READABLE
from exporter.queue.samples import split_id

MAX_ROWS: Final = 200_000
PAGE_ROWS: Final = 5_000
PAGE: Final = (
    Statement.load("exporter.queue", "stored.sql")
    .with_statement(
        "rest",
        READABLE.with_text(
            "narrowed",
            """
           AND metrics.id = $3
           AND metrics.created_at < $4
         ORDER BY metrics.created_at DESC
         FETCH FIRST ($5::bigint) ROWS WITH TIES""",
        ),
    )
    .with_statement(
        "following",
        READABLE.with_text(
            "narrowed",
            """
           AND metrics.id > $3
         ORDER BY metrics.id, metrics.created_at DESC
         FETCH FIRST ($5::bigint) ROWS WITH TIES""",
        ),
    )
)


@dataclass(slots=True)
class StoredSeries:
    """The readable rows of one series, oldest first: epoch seconds, and the number when written."""

    id: str
    times: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def rows(self) -> Iterator[tuple[float, float]]:
        """Time and value of each."""
        return zip(self.times, self.values, strict=True)


@dataclass(slots=True)
class StoredRows:
    """Reads page after page while there are `more`, each in a transaction of its own that the caller opens."""

    from_at: float
    to_at: float
    series: dict[str, StoredSeries] = field(default_factory=dict)
    more: bool = True
    _key: tuple[str, datetime] = ("", datetime.fromtimestamp(0, UTC))
    _count: int = 0

    async def read_page(self, transaction: Transaction) -> None:
        """Read one more page. Raises `TooManyRows`."""
        rows = await transaction.fetch(PAGE, self.from_at, self.to_at, *self._key, PAGE_ROWS)
        self._count += len(rows)
        if self._count > MAX_ROWS:
            raise TooManyRows(f"More than {MAX_ROWS:,} rows are stored: ask /api/workers/queue_metrics_series instead.")
        for row in rows:
            if row["number"] is not None and split_id(row["id"]) is not None:
                one = self.series.setdefault(row["id"], StoredSeries(row["id"]))
                one.times.append(row["at"])
                one.values.append(row["at"] - row["number"] if row["climbing"] else row["number"])
        if rows:
            self._key = (rows[-1]["id"], rows[-1]["created_at"])
        self.more = len(rows) >= PAGE_ROWS

    def finish(self) -> tuple[StoredSeries, ...]:
        """Every series in code point order, its rows oldest first."""
        for one in self.series.values():
            one.times.reverse()
            one.values.reverse()
        return tuple(one for _, one in sorted(self.series.items()))
