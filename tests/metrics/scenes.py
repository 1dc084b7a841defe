"""Snapshots to render, and the exposition read back by somebody else's parser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter.fairness.admission import decide
from exporter.fairness.values import (
    FairnessMode,
    FairnessReading,
    FairnessSettings,
    FairnessSnapshot,
    Payload,
    ServiceTimes,
    WorkspaceUsage,
)
from exporter.metrics.collect import Chosen, Collected, Scope, collect
from exporter.metrics.exposition import Exposition
from exporter.metrics.freshness import freshness
from exporter.metrics.own import OwnMetrics
from exporter.queue.values import QueueMode, QueueReading, QueueSnapshot, TagReading, WorkspaceWait
from exporter.snapshot import CollectorStatus, Snapshot

NOW = 1_800_000_000.0
MONOTONIC = 5_000.0
SCOPE = Scope(FairnessMode.ENFORCE)
Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]

NOISY = WorkspaceUsage("noisy", 360_000_000, ServiceTimes(2, 68.0))
QUIET = WorkspaceUsage("quiet", 140_000_000, ServiceTimes(50, 50.0))


def fairness(
    usage: Sequence[WorkspaceUsage] = (NOISY, QUIET),
    *,
    mode: FairnessMode = FairnessMode.ENFORCE,
    settings: FairnessSettings | None = None,
    in_force: Payload | None = None,
    read_at: float = NOW,
    ours: bool = True,
    with_reading: bool = True,
    payload_age_seconds: float | None = 1.0,
    observed_monotonic: float = MONOTONIC,
    **reading: Any,
) -> FairnessSnapshot:
    """A snapshot as the loop makes it. `ours` says that the reading's writer stored its decision with it."""
    settings = settings or FairnessSettings(enabled=True, max_percent=60)
    in_force = Payload(("noisy",), 518) if in_force is None else in_force
    read = FairnessReading(read_at, "replica-1", 10, tuple(usage), decided=in_force if ours else None, **reading)
    return FairnessSnapshot(
        mode=mode,
        settings=settings,
        now=NOW,
        observed_monotonic=observed_monotonic,
        in_force=in_force,
        in_force_since=dict.fromkeys(in_force.overloaded, NOW - 42.5),
        payload_at=None if payload_age_seconds is None else NOW - payload_age_seconds,
        payload_age_seconds=payload_age_seconds,
        reading=read if with_reading else None,
        would=decide(read, settings) if with_reading else None,
        refreshed_by="replica-1",
    )


def queue(
    tags: Sequence[TagReading] = (),
    *,
    workspaces: Sequence[WorkspaceWait] = (),
    drained: Sequence[str] = (),
    observed_monotonic: float = MONOTONIC,
    **reading: Any,
) -> QueueSnapshot:
    """A snapshot of the queue, read every 10 s."""
    read = QueueReading(NOW, "replica-1", tuple(tags), tuple(workspaces), tuple(drained), **reading)
    return QueueSnapshot(QueueMode.OBSERVE, NOW, observed_monotonic, 10.0, read)


def tag(name: str, waiting: int = 0, *, running: int = 0, workers: int = 1, waited: float = 12.0) -> TagReading:
    """A tag whose head, if any, has been due for `waited` seconds."""
    return TagReading(name, waiting, NOW - waited if waiting else None, running, workers)


def snapshot(
    fairness_part: FairnessSnapshot | None = None, queue_part: QueueSnapshot | None = None, *, up: bool = True
) -> Snapshot:
    """The whole state, with all three collectors at work."""
    statuses = tuple(CollectorStatus(name, up, NOW if up else None) for name in ("fairness", "queue", "retention"))
    return Snapshot(statuses, fairness_part, queue_part, database_up=up)


def full_snapshot(tags: int = 3) -> Snapshot:
    """A state in which every family has a sample."""
    return snapshot(
        fairness(ours=False),
        queue(
            [tag(f"tag-{number}", 5, running=1) for number in range(tags)],
            workspaces=[WorkspaceWait("noisy", 7, NOW - 30)],
            drained=["drained"],
        ),
    )


def own_metrics() -> OwnMetrics:
    """The metrics of a process with two connections."""
    return OwnMetrics(lambda: {"idle": 1, "busy": 1})


def collected(
    state: Snapshot, *, scope: Scope = SCOPE, now: float = MONOTONIC, previous: Chosen | None = None
) -> Collected:
    """The metrics of `state` at the monotonic time `now`."""
    return collect(state, freshness(state, scope.fairness_mode, now), scope, previous or Chosen())


def values(result: Collected) -> Mapping[str, Mapping[str, float]]:
    """Samples by family, then by the value of the one label that database families have."""
    return {
        metric.family.name: {"".join(sample.labels): float(sample.value) for sample in metric.samples}
        for metric in result.metrics
    }


def parsed(text: bytes, exposition: Exposition) -> Values:
    """The samples that prometheus_client's parser for the format reads; fails on a duplicate."""
    parse = parse_openmetrics if exposition is Exposition.OPENMETRICS else parse_text
    found: Values = {}
    for family in parse(text.decode()):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, key
            found[key] = sample.value
    return found
