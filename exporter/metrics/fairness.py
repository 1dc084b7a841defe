"""Pure: a fairness snapshot as families."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from exporter.fairness.admission import target_share
from exporter.fairness.values import (
    ADMIT_ALL_PPM,
    MICROS,
    Decision,
    FairnessMode,
    FairnessReading,
    FairnessSettings,
    FairnessSnapshot,
    FairnessState,
)
from exporter.metrics import families
from exporter.metrics.choose import choose
from exporter.metrics.labelled import chosen_of, labelled, single
from exporter.metrics.values import Metric


def fairness_state(state: FairnessState) -> Metric:
    """1 for the present state, 0 for the others."""
    return labelled(families.STATE, ((each.value, each is state) for each in FairnessState))


def choose_workspaces(
    previous: AbstractSet[str], snapshot: FairnessSnapshot, usage_is_fresh: bool, limit: int
) -> frozenset[str]:
    """The workspaces to export: the capped ones first (in force, then those that we would cap), then the largest."""
    capped = set(snapshot.in_force.overloaded)
    sizes = dict.fromkeys(capped, 0.0)
    if usage_is_fresh and snapshot.reading is not None:
        sizes |= {usage.workspace: usage.worker_micros for usage in snapshot.reading.usage}
        if snapshot.would is not None and shows_would(snapshot):
            capped.update(snapshot.would.payload.overloaded)
    return choose(previous, sizes, capped, limit)


def fairness_metrics(
    snapshot: FairnessSnapshot, usage_is_fresh: bool, state: FairnessState, chosen: AbstractSet[str]
) -> Iterator[Metric]:
    """Every family of the snapshot but the state. Without fresh usage of the cluster what derives from it is absent."""
    reading = snapshot.reading if usage_is_fresh else None
    yield from _in_force(snapshot, state)
    yield from _by_workspace(snapshot, reading, chosen)
    yield from _settings(snapshot.settings)
    if reading is not None:
        yield from _cluster(snapshot, reading, chosen)
        if snapshot.would is not None:
            yield from _equation(snapshot.would)
            if shows_would(snapshot):
                yield from _would(snapshot.would, reading, chosen)


def _in_force(snapshot: FairnessSnapshot, state: FairnessState) -> Iterator[Metric]:
    payload = snapshot.in_force
    admits_all = not payload.overloaded or state is FairnessState.STALE
    yield single(families.CAPPED_WORKSPACES, len(payload.overloaded))
    yield single(families.ADMISSION_PPM, payload.admission_ppm)
    yield single(families.ADMISSION, 1 if admits_all else payload.admission_ppm / ADMIT_ALL_PPM)
    yield single(families.TARGET_SHARE, target_share(snapshot.settings.max_percent))
    if snapshot.payload_at is not None:
        yield single(families.PAYLOAD_UPDATED, snapshot.payload_at)


def _by_workspace(
    snapshot: FairnessSnapshot, reading: FairnessReading | None, chosen: AbstractSet[str]
) -> Iterator[Metric]:
    """Workspaces with usage, and capped ones without any: these held 0 worker-seconds."""
    capped = frozenset(snapshot.in_force.overloaded)
    micros = dict.fromkeys(snapshot.in_force.overloaded, 0)
    summed_up = 0
    if reading is not None:
        micros |= {usage.workspace: usage.worker_micros for usage in reading.usage}
        summed_up = reading.other_workspaces
        total = max(reading.total_micros, 1)
        yield chosen_of(
            families.WORKER_SECONDS, ((name, held / MICROS) for name, held in micros.items()), chosen, summed_up
        )
        yield chosen_of(families.SHARE, ((name, held / total) for name, held in micros.items()), chosen, summed_up)
    yield chosen_of(families.CAPPED, ((name, name in capped) for name in micros), chosen, summed_up)
    since = snapshot.in_force_since
    yield chosen_of(families.CAPPED_SINCE, ((name, since[name]) for name in capped if name in since), chosen)


def _settings(settings: FairnessSettings) -> Iterator[Metric]:
    yield labelled(
        families.SETTING,
        (
            ("enabled", settings.enabled),
            ("max_percent", settings.max_percent),
            ("duration_seconds", settings.window_seconds),
            ("min_total_worker_seconds", settings.min_total_worker_seconds),
        ),
    )


def _cluster(snapshot: FairnessSnapshot, reading: FairnessReading, chosen: AbstractSet[str]) -> Iterator[Metric]:
    total = reading.total_micros
    capped = frozenset(snapshot.in_force.overloaded)
    held = sum(usage.worker_micros for usage in reading.usage if usage.workspace in capped)
    left_out = sum(usage.worker_micros for usage in reading.usage if usage.workspace not in chosen)
    yield single(families.CLUSTER_WORKER_SECONDS, total / MICROS)
    yield single(families.CAPPED_SHARE, held / max(total, 1))
    yield single(families.OTHER_WORKER_SECONDS, (left_out + reading.other_micros) / MICROS)


def _equation(decision: Decision) -> Iterator[Metric]:
    if decision.expected_share is not None:
        yield single(families.EXPECTED_SHARE, decision.expected_share)
    means = (
        ("capped", decision.capped_service.mean_seconds),
        ("uncapped", decision.uncapped_service.mean_seconds),
    )
    yield labelled(families.MEAN_SERVICE, ((bucket, mean) for bucket, mean in means if mean is not None))


def _would(decision: Decision, reading: FairnessReading, chosen: AbstractSet[str]) -> Iterator[Metric]:
    capped = frozenset(decision.payload.overloaded)
    workspaces = (usage.workspace for usage in reading.usage)
    yield chosen_of(
        families.WOULD_CAP, ((name, name in capped) for name in workspaces), chosen, reading.other_workspaces
    )
    yield single(families.WOULD_ADMISSION, decision.admission if capped else 1)


def shows_would(snapshot: FairnessSnapshot) -> bool:
    """In shadow, or when another writer decides: our fleet then reads for the reading alone and stores no decision."""
    beside = snapshot.reading is not None and snapshot.reading.decided is None
    return snapshot.mode is FairnessMode.SHADOW or beside
