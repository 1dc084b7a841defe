"""Pure: the present state of fairness in one word."""

from __future__ import annotations

from exporter.fairness.admission import decision_is_stale
from exporter.fairness.values import MICROS, FairnessMode, FairnessSnapshot, FairnessState


def present_state(
    snapshot: FairnessSnapshot | None, mode: FairnessMode, *, failed: bool, now_monotonic: float
) -> FairnessState:
    """The state to show. `failed` says that the last refresh failed; `now_monotonic` ages the snapshot's payload."""
    if mode is FairnessMode.OFF:
        return FairnessState.OFF
    if failed or snapshot is None:
        return FairnessState.FAILED
    if not snapshot.settings.enabled:
        return FairnessState.DISABLED
    if decision_is_stale(decision_age_seconds(snapshot, now_monotonic)):
        return FairnessState.STALE
    return _state_in_force(snapshot)


def _state_in_force(snapshot: FairnessSnapshot) -> FairnessState:
    if snapshot.in_force.overloaded:
        return FairnessState.CAPPING
    floor = snapshot.settings.min_total_worker_seconds * MICROS
    below = snapshot.reading is not None and snapshot.reading.total_micros < floor
    return FairnessState.IDLE if below else FairnessState.FAIR


def decision_age_seconds(snapshot: FairnessSnapshot, now_monotonic: float) -> float | None:
    """How old the stored decision is now: its age when read, and the time that passed here since."""
    if snapshot.payload_age_seconds is None:
        return None
    return snapshot.payload_age_seconds + (now_monotonic - snapshot.observed_monotonic)
