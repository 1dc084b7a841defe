"""Pure: who is capped. Integer arithmetic throughout, since equal tenants meet the threshold exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from exporter.fairness.values import MAX_CAPPED_WORKSPACES, MICROS


def classify(
    worker_micros: Mapping[str, int], total_micros: int, *, max_percent: int, min_total_worker_seconds: int
) -> tuple[str, ...]:
    """The capped workspaces, largest first, ties by id in code point order, at most 64.

    `worker_micros` maps workspaces to their worker time in microseconds; `total_micros` is everybody's, of which the
    mapping may be the largest part. Nobody is capped below the floor; a workspace with nothing never is.
    """
    if total_micros < min_total_worker_seconds * MICROS:
        return ()
    capped = [
        (-micros, workspace)
        for workspace, micros in worker_micros.items()
        if micros > 0 and micros * 100 >= max_percent * total_micros
    ]
    return tuple(workspace for _, workspace in sorted(capped)[:MAX_CAPPED_WORKSPACES])


def transitions(previous: Iterable[str], current: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Who entered and who left the capped set, each in the order of its own list without repetition."""
    before, after = dict.fromkeys(previous), dict.fromkeys(current)
    entered = tuple(workspace for workspace in after if workspace not in before)
    left = tuple(workspace for workspace in before if workspace not in after)
    return entered, left
