"""Pure: a snapshot as metrics, within the limits on cardinality."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exporter.fairness.values import FairnessMode
from exporter.metrics import families
from exporter.metrics.fairness import choose_workspaces, fairness_metrics, fairness_state
from exporter.metrics.freshness import Freshness
from exporter.metrics.labelled import labelled, single
from exporter.metrics.queue import choose_tags, choose_waiting_workspaces, tag_metrics, waiting_metrics
from exporter.metrics.values import Metric
from exporter.snapshot import CollectorStatus, Snapshot


@dataclass(frozen=True, slots=True)
class Scope:
    """What a replica exports: how many workspaces and tags at the most, and whether the cluster's families at all."""

    fairness_mode: FairnessMode
    max_workspaces: int = 100
    max_tags: int = 500
    cluster: bool = True


@dataclass(frozen=True, slots=True)
class Chosen:
    """The label values exported last: fed back, so that a series does not flicker around a limit."""

    workspaces: frozenset[str] = frozenset()
    waiting_workspaces: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Collected:
    """The families of one snapshot, and what was chosen for them."""

    metrics: tuple[Metric, ...]
    chosen: Chosen


def collect(snapshot: Snapshot, fresh: Freshness, scope: Scope, previous: Chosen) -> Collected:
    """Every family that `snapshot` gives. What is not fresh is absent, and its choice of labels is kept for later."""
    metrics = list(_status(snapshot, fresh))
    workspaces, waiting, tags = previous.workspaces, previous.waiting_workspaces, previous.tags
    if scope.cluster:
        metrics.append(fairness_state(fresh.state))
        if fresh.fairness and snapshot.fairness is not None:
            workspaces = choose_workspaces(workspaces, snapshot.fairness, fresh.usage, scope.max_workspaces)
            metrics.extend(fairness_metrics(snapshot.fairness, fresh.usage, fresh.state, workspaces))
        if fresh.queue and snapshot.queue is not None:
            reading = snapshot.queue.reading
            tags = choose_tags(tags, reading, scope.max_tags)
            waiting = choose_waiting_workspaces(waiting, reading, scope.max_workspaces)
            metrics.extend(tag_metrics(reading, tags))
            metrics.extend(waiting_metrics(reading, waiting))
    return Collected(tuple(metrics), Chosen(workspaces, waiting, tags))


def _status(snapshot: Snapshot, fresh: Freshness) -> Iterator[Metric]:
    statuses = snapshot.collectors
    yield single(families.UP, snapshot.database_up)
    yield labelled(families.COLLECTOR_SUCCESS, ((each.name, _succeeds(each, fresh)) for each in statuses))
    yield labelled(families.COLLECTOR_LAST_SUCCESS, ((each.name, each.last_success_epoch or 0.0) for each in statuses))


def _succeeds(status: CollectorStatus, fresh: Freshness) -> bool:
    is_fresh = {"fairness": fresh.fairness, "queue": fresh.queue}
    return status.success and is_fresh.get(status.name, True)
