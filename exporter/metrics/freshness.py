"""Pure: which parts of a snapshot are new enough to be exported, and the present state of fairness.

Everything on the page that depends on the clock is decided here, so that equal answers mean an unchanged page.
"""

from __future__ import annotations

from dataclasses import dataclass

from exporter.fairness.state import present_state
from exporter.fairness.values import FairnessMode, FairnessSnapshot, FairnessState
from exporter.queue.values import QueueSnapshot
from exporter.snapshot import Snapshot, is_stale


@dataclass(frozen=True, slots=True)
class Freshness:
    """`fairness`: the snapshot of settings and decision; `usage`: the cluster's usage in it; `queue`: its reading."""

    fairness: bool
    usage: bool
    queue: bool
    state: FairnessState


def freshness(snapshot: Snapshot, mode: FairnessMode, now_monotonic: float) -> Freshness:
    """What of `snapshot` may be exported at `now_monotonic` (seconds of this host's monotonic clock)."""
    fairness, queue = snapshot.fairness, snapshot.queue
    status = snapshot.collector("fairness")
    failed = status is not None and not status.success
    fresh = fairness is not None and not is_stale(fairness.observed_monotonic, fairness.interval_seconds, now_monotonic)
    return Freshness(
        fairness=fresh,
        usage=fresh and fairness is not None and _usage_is_fresh(fairness, now_monotonic),
        queue=queue is not None and _reading_is_fresh(queue, queue.reading.read_at, now_monotonic),
        state=present_state(fairness, mode, failed=failed, now_monotonic=now_monotonic),
    )


def _usage_is_fresh(snapshot: FairnessSnapshot, now_monotonic: float) -> bool:
    return snapshot.reading is not None and _reading_is_fresh(snapshot, snapshot.reading.read_at, now_monotonic)


def _reading_is_fresh(snapshot: FairnessSnapshot | QueueSnapshot, read_at: float, now_monotonic: float) -> bool:
    """A reading of another replica is older than our look at it, and stays so however often we look."""
    read_monotonic = snapshot.observed_monotonic - max(0.0, snapshot.now - read_at)
    return not is_stale(read_monotonic, snapshot.interval_seconds, now_monotonic)
