"""`GET /api/fairness`: everything that explains the present, from the last snapshot. Pure but for the handler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import web

from exporter.fairness.admission import target_share
from exporter.fairness.state import decision_age_seconds, present_state
from exporter.fairness.values import (
    MICROS,
    Decision,
    FairnessMode,
    FairnessReading,
    FairnessSettings,
    FairnessSnapshot,
    FairnessState,
    RefreshResult,
    SettingSource,
)
from exporter.snapshot import Snapshot
from exporter.web import keys
from exporter.web.answers import json_answer


@dataclass(frozen=True, slots=True)
class SettingAnswer:
    """A setting in force, and whether the file, the database or the default gives it."""

    value: bool | int
    source: SettingSource


@dataclass(frozen=True, slots=True)
class WorkspaceAnswer:
    """One workspace in the window. `share` is 0 to 1; `capped_since` in epoch milliseconds of the database."""

    workspace: str
    worker_seconds: float
    share: float
    capped: bool
    would_cap: bool
    capped_since: int | None


@dataclass(frozen=True, slots=True)
class UsageAnswer:
    """One reading of the whole cluster. `workspaces` are the largest ones, largest first; the others are summed up."""

    time: int
    age_seconds: float
    read_by: str
    window_seconds: int
    total_worker_seconds: float
    other_worker_seconds: float
    other_workspaces: int
    capped_share: float


@dataclass(frozen=True, slots=True)
class DecisionAnswer:
    """What the reading asks for under the settings in force, and what led to it: the means are D_c and D_u."""

    capped: tuple[str, ...]
    admission_ppm: int
    expected_share: float | None
    capped_mean_seconds: float | None
    uncapped_mean_seconds: float | None


@dataclass(frozen=True, slots=True)
class RefreshAnswer:
    """This replica's last cycle. `last_success` is in epoch milliseconds of this replica's clock."""

    outcome: RefreshResult | None
    success: bool
    last_success: int | None
    problem: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class FairnessAnswer:
    """The body. Parts that were not read yet are null or empty; `payload_age_seconds` is that of the decision in force.

    `refreshed_by` is the replica whose decision is in force, null when another writer (Windmill itself) made it.
    """

    state: FairnessState
    mode: FairnessMode | None
    settings: Mapping[str, SettingAnswer]
    target_share: float | None
    capped: tuple[str, ...]
    admission_ppm: int | None
    payload_age_seconds: float | None
    refreshed_by: str | None
    refreshed_by_us: bool
    decision: DecisionAnswer | None
    usage: UsageAnswer | None
    workspaces: tuple[WorkspaceAnswer, ...]
    last_refresh: RefreshAnswer | None


async def fairness(request: web.Request) -> web.Response:
    """The answer as JSON."""
    return json_answer(explain(request.app[keys.BOARD].current, request.app[keys.MONOTONIC]()))


def mode_of(snapshot: Snapshot) -> FairnessMode | None:
    """The mode, as the snapshot shows it; None while nothing was read."""
    if snapshot.fairness is not None:
        return snapshot.fairness.mode
    return FairnessMode.OFF if snapshot.collector("fairness") is None else None


def reading_age_seconds(snapshot: FairnessSnapshot, now_monotonic: float) -> float | None:
    """How old the reading is: by the database's clock when it was looked at, and by ours since then."""
    if snapshot.reading is None:
        return None
    return max(0.0, snapshot.now - snapshot.reading.read_at) + (now_monotonic - snapshot.observed_monotonic)


def explain(snapshot: Snapshot, now_monotonic: float) -> FairnessAnswer:
    """What is to be said about `snapshot` at `now_monotonic`. Pure."""
    part, mode, status = snapshot.fairness, mode_of(snapshot), snapshot.collector("fairness")
    failed = status is not None and not status.success
    state = present_state(part, mode or FairnessMode.SHADOW, failed=failed, now_monotonic=now_monotonic)
    refresh = None
    if status is not None:
        last = None if status.last_success_epoch is None else _milliseconds(status.last_success_epoch)
        refresh = RefreshAnswer(snapshot.refresh, status.success, last, status.problem, status.reason)
    return FairnessAnswer(
        state=state,
        mode=mode,
        settings={} if part is None else _settings(part.settings),
        target_share=None if part is None else target_share(part.settings.max_percent),
        capped=() if part is None else part.in_force.overloaded,
        admission_ppm=None if part is None else part.in_force.admission_ppm,
        payload_age_seconds=None if part is None else decision_age_seconds(part, now_monotonic),
        refreshed_by=None if part is None else part.refreshed_by,
        refreshed_by_us=part is not None and part.refreshed_by == snapshot.replica,
        decision=None if part is None or part.would is None else _decision(part.would),
        usage=None if part is None else _usage(part, now_monotonic),
        workspaces=() if part is None else _workspaces(part),
        last_refresh=refresh,
    )


def _settings(settings: FairnessSettings) -> Mapping[str, SettingAnswer]:
    """By the names of Windmill's settings, under which an operator changes them."""
    values: Mapping[str, bool | int] = {
        "workspace_fairness_enabled": settings.enabled,
        "workspace_fairness_max_percent": settings.max_percent,
        "workspace_fairness_duration_secs": settings.window_seconds,
        "workspace_fairness_min_total_jobs": settings.min_total_worker_seconds,
    }
    default = SettingSource.DEFAULT
    return {name: SettingAnswer(value, settings.sources.get(name, default)) for name, value in values.items()}


def _decision(decision: Decision) -> DecisionAnswer:
    return DecisionAnswer(
        capped=decision.payload.overloaded,
        admission_ppm=decision.payload.admission_ppm,
        expected_share=decision.expected_share,
        capped_mean_seconds=decision.capped_service.mean_seconds,
        uncapped_mean_seconds=decision.uncapped_service.mean_seconds,
    )


def _usage(snapshot: FairnessSnapshot, now_monotonic: float) -> UsageAnswer | None:
    reading, age = snapshot.reading, reading_age_seconds(snapshot, now_monotonic)
    if reading is None or age is None:
        return None
    capped = frozenset(snapshot.in_force.overloaded)
    held = sum(usage.worker_micros for usage in reading.usage if usage.workspace in capped)
    return UsageAnswer(
        time=_milliseconds(reading.read_at),
        age_seconds=age,
        read_by=reading.by,
        window_seconds=reading.window_seconds,
        total_worker_seconds=reading.total_micros / MICROS,
        other_worker_seconds=reading.other_micros / MICROS,
        other_workspaces=reading.other_workspaces,
        capped_share=_share(held, reading),
    )


def _workspaces(snapshot: FairnessSnapshot) -> tuple[WorkspaceAnswer, ...]:
    """Those of the reading, then capped ones that held nothing."""
    reading, since = snapshot.reading, snapshot.in_force_since
    micros = {} if reading is None else {usage.workspace: usage.worker_micros for usage in reading.usage}
    would = frozenset(() if snapshot.would is None else snapshot.would.payload.overloaded)
    capped = frozenset(snapshot.in_force.overloaded)
    return tuple(
        WorkspaceAnswer(
            workspace=name,
            worker_seconds=micros.get(name, 0) / MICROS,
            share=0.0 if reading is None else _share(micros.get(name, 0), reading),
            capped=name in capped,
            would_cap=name in would,
            capped_since=_milliseconds(since[name]) if name in capped and name in since else None,
        )
        for name in dict.fromkeys((*micros, *snapshot.in_force.overloaded))
    )


def _share(micros: int, reading: FairnessReading) -> float:
    return micros / max(reading.total_micros, 1)


def _milliseconds(epoch_seconds: float) -> int:
    return round(epoch_seconds * 1000)
