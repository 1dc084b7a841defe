"""The admission probability, and the share that it gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.fairness.admission import (
    admission_ppm,
    admission_probability,
    admits,
    decide,
    decision_is_stale,
    share_of_admission,
    target_share,
)
from exporter.fairness.values import FairnessReading, FairnessSettings, ServiceTimes, WorkspaceUsage
from tests.sources import CASES

PUBLISHED = json.loads((CASES / "admission.json").read_text())
means = st.floats(0.001, 10_000)
targets = st.floats(0.06, 0.99)


@pytest.mark.parametrize("case", PUBLISHED["admission"])
def test_the_published_probabilities(case: dict[str, Any]) -> None:
    capped, uncapped = (ServiceTimes(case[key]["jobs"], case[key]["seconds"]) for key in ("capped", "uncapped"))
    probability = admission_probability(case["target"], capped, uncapped)
    assert probability == pytest.approx(case["p"], abs=1e-9)
    assert admission_ppm(probability) == case["ppm"]


@pytest.mark.parametrize("case", PUBLISHED["share"])
def test_the_published_shares(case: dict[str, float]) -> None:
    assert share_of_admission(case["p"], case["d_c"], case["d_u"]) == pytest.approx(case["share"], abs=1e-9)


@given(targets, means, means)
def test_the_probability_gives_the_target_share(target: float, capped: float, uncapped: float) -> None:
    probability = admission_probability(target, ServiceTimes(1, capped), ServiceTimes(1, uncapped))
    assert 0 < probability < 1
    assert share_of_admission(probability, capped, uncapped) == pytest.approx(target, abs=1e-9)


@given(targets, means)
def test_equal_durations_give_the_target_itself(target: float, seconds: float) -> None:
    same = ServiceTimes(3, seconds)
    assert admission_probability(target, same, same) == pytest.approx(target)


@given(st.floats(-1, 2))
def test_the_stored_value_is_rounded_half_up_and_bounded(probability: float) -> None:
    ppm = admission_ppm(probability)
    assert 0 <= ppm <= 10_000
    if 0 <= probability <= 1:
        assert -0.5 <= ppm - probability * 10_000 <= 0.5


def test_half_a_part_is_rounded_up() -> None:
    assert admission_ppm(0.00005) == 1


@pytest.mark.parametrize(("max_percent", "target"), [(50, 0.55), (60, 0.65), (97, 1.0), (100, 1.0), (1, 0.06)])
def test_the_target_is_the_cap_and_the_hysteresis(max_percent: int, target: float) -> None:
    assert target_share(max_percent) == target


def test_a_draw_admits_in_exactly_ppm_of_ten_thousand_cases() -> None:
    for ppm in (0, 1, 518, 9_999, 10_000):
        assert sum(admits(ppm, draw) for draw in range(10_000)) == ppm


@pytest.mark.parametrize(("age", "stale"), [(0.0, False), (60.0, False), (60.1, True), (None, True)])
def test_a_decision_holds_for_a_minute(age: float | None, stale: bool) -> None:
    assert decision_is_stale(age) is stale


def reading(*usage: WorkspaceUsage, other: ServiceTimes | None = None) -> FairnessReading:
    return FairnessReading(1.0, "test", 10, usage, other_service=other or ServiceTimes())


def test_service_times_are_pooled_over_jobs_and_not_averaged_over_workspaces() -> None:
    """F44: with means of 34 s and 1 s and a cap of 60 %, 518 parts per 10,000."""
    decision = decide(
        reading(
            WorkspaceUsage("noisy", 60_000_000, ServiceTimes(10, 340.0)),
            WorkspaceUsage("a", 1_000_000, ServiceTimes(1, 10.0)),
            WorkspaceUsage("b", 1_000_000, ServiceTimes(9, 5.0)),
            other=ServiceTimes(10, 5.0),
        ),
        FairnessSettings(max_percent=60),
    )
    assert decision.payload.overloaded == ("noisy",)
    assert decision.payload.admission_ppm == 518
    assert decision.uncapped_service == ServiceTimes(20, 20.0)
    assert decision.expected_share == pytest.approx(0.65)


def test_with_nobody_capped_the_stored_value_is_the_target() -> None:
    decision = decide(reading(WorkspaceUsage("a", 10, ServiceTimes(1, 1.0))), FairnessSettings())
    assert decision.payload.overloaded == ()
    assert decision.payload.admission_ppm == 5500
    assert decision.expected_share is None
