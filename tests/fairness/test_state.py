"""The present state in one word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exporter.fairness.state import decision_age_seconds, present_state
from exporter.fairness.values import (
    FairnessMode,
    FairnessReading,
    FairnessSettings,
    FairnessSnapshot,
    FairnessState,
    Payload,
    ServiceTimes,
    WorkspaceUsage,
)

READING = FairnessReading(100.0, "r", 10, (WorkspaceUsage("w", 5_000_000, ServiceTimes()),))
FAIR = FairnessSnapshot(
    mode=FairnessMode.ENFORCE,
    settings=FairnessSettings(enabled=True),
    now=100.0,
    observed_monotonic=0.0,
    in_force=Payload((), 5500),
    in_force_since={},
    payload_at=100.0,
    payload_age_seconds=0.0,
    reading=READING,
    would=None,
    refreshed_by="r",
)


@pytest.mark.parametrize(
    ("snapshot", "failed", "expected"),
    [
        (FAIR, False, FairnessState.FAIR),
        (FAIR, True, FairnessState.FAILED),
        (None, False, FairnessState.FAILED),
        (replace(FAIR, settings=FairnessSettings()), False, FairnessState.DISABLED),
        (replace(FAIR, in_force=Payload(("w",), 100)), False, FairnessState.CAPPING),
        (replace(FAIR, in_force=Payload(("w",), 100), payload_age_seconds=61.0), False, FairnessState.STALE),
        (replace(FAIR, payload_age_seconds=None), False, FairnessState.STALE),
        (replace(FAIR, reading=replace(READING, usage=())), False, FairnessState.IDLE),
    ],
)
def test_the_state_says_what_an_operator_must_know_first(
    snapshot: FairnessSnapshot | None, failed: bool, expected: FairnessState
) -> None:
    assert present_state(snapshot, FairnessMode.ENFORCE, failed=failed, now_monotonic=0.0) is expected


def test_off_is_off_whatever_else() -> None:
    assert present_state(None, FairnessMode.OFF, failed=True, now_monotonic=0.0) is FairnessState.OFF


def test_a_decision_grows_old_while_nobody_looks() -> None:
    assert decision_age_seconds(replace(FAIR, payload_age_seconds=2.0), 58.5) == 60.5
    assert present_state(FAIR, FairnessMode.ENFORCE, failed=False, now_monotonic=61.0) is FairnessState.STALE
