"""Pure: the worker time of the window by workspace, bounded to what a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nsmallest

from exporter.fairness.values import MICROS, FairnessSnapshot
from exporter.metrics.fairness import shows_would
from exporter.queue.values import QueueReading, WorkspaceWait
from exporter.web.status.values import Clocks, Mark, Moment, ShareRow, Shares

# Rows that change places at every look cannot be read: within ten points of each other they stand by name.
CALM_SHARE = 0.1


def shares(snapshot: FairnessSnapshot, queue: QueueReading | None, clocks: Clocks, limit: int) -> Shares | None:
    """The `limit` workspaces that matter most: capped, by worker time, by jobs waiting. None without a reading.

    `queue` is the reading of the queue where it is fresh: it says who waits.
    """
    reading = snapshot.reading
    if reading is None:
        return None
    passed = clocks.monotonic - snapshot.observed_monotonic
    micros = {usage.workspace: usage.worker_micros for usage in reading.usage}
    waits = {} if queue is None else {wait.workspace: wait for wait in queue.workspaces}
    marks = _marks(snapshot)
    total = max(reading.total_micros, 1)

    def weight(name: str) -> tuple[bool, int, int, str]:
        waiting = waits[name].waiting if name in waits else 0
        return (name not in marks, -micros.get(name, 0), -waiting, name)

    def row(name: str) -> ShareRow:
        held, wait, since = micros.get(name, 0), waits.get(name), snapshot.in_force_since.get(name)
        return ShareRow(
            workspace=name,
            share=held / total,
            worker_seconds=held / MICROS,
            mark=marks.get(name, Mark.NONE),
            since=None if since is None else Moment(since, snapshot.now - since + passed),
            waiting=0 if wait is None else wait.waiting,
            longest_wait_seconds=_longest_wait(wait, queue),
        )

    names = micros.keys() | waits.keys() | marks.keys()
    chosen = nsmallest(limit, names, key=weight)
    left_out = names - set(chosen)
    return Shares(
        read=Moment(reading.read_at, snapshot.now - reading.read_at + passed),
        rows=tuple(sorted(map(row, chosen), key=_calm_order)),
        cap=snapshot.settings.max_percent / 100,
        window_seconds=reading.window_seconds,
        total_worker_seconds=reading.total_micros / MICROS,
        floor_worker_seconds=snapshot.settings.min_total_worker_seconds,
        other_workspaces=len(left_out) + reading.other_workspaces,
        other_share=(sum(micros.get(name, 0) for name in left_out) + reading.other_micros) / total,
    )


def _marks(snapshot: FairnessSnapshot) -> Mapping[str, Mark]:
    would = snapshot.would.payload.overloaded if snapshot.would is not None and shows_would(snapshot) else ()
    return dict.fromkeys(would, Mark.WOULD_BE_CAPPED) | dict.fromkeys(snapshot.in_force.overloaded, Mark.CAPPED)


def _longest_wait(wait: WorkspaceWait | None, queue: QueueReading | None) -> float | None:
    return None if wait is None or queue is None else max(0.0, queue.read_at - wait.waiting_since)


def _calm_order(row: ShareRow) -> tuple[bool, int, str]:
    return (row.mark is Mark.NONE, -round(row.share / CALM_SHARE), row.workspace)
