"""Pure: what the cluster did, from the records of its workers. Times are seconds since the cluster started."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True)
class Run:
    """One job from its arrival over its start to the moment its worker was free again (None: it still runs)."""

    workspace: str
    arrived_at: float
    started_at: float
    ended_at: float | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """One job that no worker has pulled yet, and for how long it will run."""

    workspace: str
    arrived_at: float
    duration_seconds: float


@dataclass(frozen=True, slots=True)
class Waits:
    """Percentiles of waiting in seconds; None without jobs."""

    p50_seconds: float | None
    p95_seconds: float | None
    p99_seconds: float | None


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    """The smallest value that `percent` of all values do not exceed (nearest rank); None of nothing."""
    if not ordered:
        return None
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)]


def measure_waits(
    runs: Iterable[Run], waiting: Iterable[Waiting], workspaces: Collection[str], since: float, until: float
) -> Waits:
    """Waiting of the jobs of `workspaces` that arrived in [since, until]; one not yet started counts with its age."""
    waits = [
        run.started_at - run.arrived_at
        for run in runs
        if run.workspace in workspaces and since <= run.arrived_at <= until
    ]
    waits += [
        until - job.arrived_at for job in waiting if job.workspace in workspaces and since <= job.arrived_at <= until
    ]
    waits.sort()
    return Waits(percentile(waits, 50), percentile(waits, 95), percentile(waits, 99))


def share_of_worker_time(runs: Iterable[Run], workspace: str, since: float, until: float) -> float | None:
    """The part of all worker-seconds within [since, until] that `workspace` held, 0..1; None when nobody held any."""
    own = total = 0.0
    for run in runs:
        ended_at = until if run.ended_at is None else min(run.ended_at, until)
        held = max(0.0, ended_at - max(run.started_at, since))
        total += held
        if run.workspace == workspace:
            own += held
    return own / total if total else None
