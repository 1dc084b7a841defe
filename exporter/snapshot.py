"""What the rest of the exporter sees of the loops: one immutable value, replaced whole.

The loops produce snapshots; metrics and web render them. Nothing here does I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from exporter.fairness.values import FairnessSnapshot, RefreshResult
from exporter.queue.values import QueueSnapshot

MIN_STALE_SECONDS = 30.0
STALE_INTERVALS = 3


@dataclass(frozen=True, slots=True)
class CollectorStatus:
    """How one collector (`fairness`, `queue`, `retention`) is doing.

    `last_success_epoch` is this host's clock: Prometheus compares it with its own.
    `problem` is one sentence for an operator while the collector fails; `reason` its bounded metric label.
    """

    name: str
    success: bool = False
    last_success_epoch: float | None = None
    problem: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole state that is rendered. Absent parts were never read, or their mode is off.

    `replica` is this process's name in shared readings; `refresh` how its last fairness cycle ended.
    """

    collectors: tuple[CollectorStatus, ...] = ()
    fairness: FairnessSnapshot | None = None
    queue: QueueSnapshot | None = None
    database_up: bool = False
    replica: str = ""
    refresh: RefreshResult | None = None

    def collector(self, name: str) -> CollectorStatus | None:
        """The status of one collector, or None when it is not configured."""
        return next((status for status in self.collectors if status.name == name), None)


def stale_after_seconds(interval_seconds: float) -> float:
    """Age from which a snapshot is stale: three of its intervals, at least 30 s (metrics.md: freshness)."""
    return max(STALE_INTERVALS * interval_seconds, MIN_STALE_SECONDS)


def is_stale(observed_monotonic: float, interval_seconds: float, now_monotonic: float) -> bool:
    """Whether a snapshot observed then must no longer be exported as if it were new."""
    return now_monotonic - observed_monotonic > stale_after_seconds(interval_seconds)


class Board:
    """Holds the current snapshot. One writer at a time (the loops share one thread); readers just read."""

    __slots__ = ("current",)

    def __init__(self, initial: Snapshot) -> None:
        self.current = initial

    def update_collector(self, status: CollectorStatus) -> None:
        """Replace the status of one collector."""
        others = tuple(status if old.name == status.name else old for old in self.current.collectors)
        self.current = replace(self.current, collectors=others)
