"""Stored series as the product reads them, and rows of every kind to store."""

from __future__ import annotations

import random
from typing import Any

from exporter.queue.history import History, Kind, RequestedWindow
from exporter.queue.render import Vertex, Window
from tests.queue.slots import Raw

KINDS = tuple(Kind)


async def lines_of(history: History, **asked: Any) -> dict[tuple[Kind, str], list[Vertex]]:
    """Every line of the last 24 h, or of what is asked."""
    wanted: dict[str, Any] = {"window": RequestedWindow(), "slots": 120, "kinds": KINDS, "tags": None} | asked
    drawn = await history.series(**wanted)
    return {(line.kind, line.tag): list(line.vertices) for line in drawn.lines}


def random_rows(source: random.Random, window: Window) -> list[Raw]:
    """Samples of all kinds, some at one moment, some at the edges of slots, and heads that change and stay."""
    span = window.to_at - window.from_at
    rows = []
    for _ in range(source.randint(1, 40)):
        at = window.from_at - 1200 + source.random() * (span + 1300)
        if source.random() < 0.2:
            at = window.from_at + source.randint(0, 120) * window.slot_seconds
        at = round(at * 1e6) / 1e6
        for _ in range(source.choice([1, 1, 1, 2, 3])):
            if source.random() < 0.5:
                since = source.choice([window.from_at - 500, at - 100, at - 100.5, at + 20])
                rows.append(Raw(at, f'{{"since": {since:.6f}}}'))
            else:
                rows.append(Raw(at, str(source.choice([0, 1, 2.5, -3, 1e6]))))
    return rows
