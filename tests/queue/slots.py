"""Slots and integrals straight from the samples, the slow and plain way: what the statements must agree with."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from exporter.database.database import Connection
from exporter.queue.render import STALE_SECONDS, Slot, Window


@dataclass(frozen=True)
class Raw:
    """One stored row: epoch seconds and its JSON text."""

    at: float
    text: str

    @property
    def since(self) -> float | None:
        """Since when the climb waits; None for a held value."""
        stored = json.loads(self.text)
        return float(stored["since"]) if isinstance(stored, dict) else None

    @property
    def value(self) -> float:
        """The value when written."""
        return float(json.loads(self.text)) if self.since is None else self.at - self.since


async def insert_raw(connection: Connection, series_id: str, rows: Sequence[Raw]) -> None:
    """Store rows, whoever wrote them."""
    await connection.execute(
        """
        INSERT INTO metrics (id, value, created_at)
        SELECT $1, row.value::jsonb, to_timestamp(row.at) FROM unnest($2::text[], $3::float8[]) AS row (value, at)
        """,
        series_id,
        [row.text for row in rows],
        [row.at for row in rows],
    )


def slots_of(rows: Sequence[Raw], window: Window) -> tuple[Slot | None, list[Slot]]:
    """The carried slot and the slots of readable rows."""
    used = [row for row in rows if window.from_at - STALE_SECONDS < row.at <= window.to_at]
    by_slot: dict[int, list[Raw]] = {}
    for row in used:
        number = math.floor((row.at - window.from_at) / window.slot_seconds)
        by_slot.setdefault(max(number, -1), []).append(row)
    made = {number: _slot(members, used) for number, members in sorted(by_slot.items())}
    return made.pop(-1, None), list(made.values())


def _slot(members: Sequence[Raw], used: Sequence[Raw]) -> Slot:
    first, last = min(row.at for row in members), max(row.at for row in members)
    latest = [row for row in members if row.at == last]
    sinces = [row.since for row in members if row.since is not None]
    peak = max(row.value for row in members)
    climbs = [row for row in members if row.since is not None]
    if climbs:
        top_at = max(row.at for row in climbs)
        since = min(row.since for row in climbs if row.at == top_at and row.since is not None)
        if top_at < last:
            peak = max(peak, min(row.at for row in used if row.at > top_at) - since)
    return Slot(
        first,
        last,
        min(row.value for row in members if row.at == first),
        max(row.value for row in latest),
        peak,
        any(row.since is not None for row in latest),
        len(sinces) == len(members) and max(sinces) - min(sinces) < 1,
    )


def integral(rows: Sequence[Raw], begin: float, end: float) -> tuple[float, float]:
    """Area and highest value of what the rows draw from `begin` to `end`, by many small rectangles for climbs."""
    area = highest = 0.0
    times = sorted({row.at for row in rows})
    for index, at in enumerate(times):
        tied = [row for row in rows if row.at == at]
        value, climbs = max(row.value for row in tied), any(row.since is not None for row in tied)
        until = min(at + STALE_SECONDS, end, *times[index + 1 : index + 2])
        left = max(at, begin)
        if until <= left:
            continue
        pieces = 1000 if climbs else 1
        width = (until - left) / pieces
        for piece in range(pieces):
            middle = left + (piece + 0.5) * width
            area += width * max(0.0, value + (middle - at if climbs else 0.0))
        highest = max(highest, value + (until - at if climbs else 0.0))
    return area, highest
