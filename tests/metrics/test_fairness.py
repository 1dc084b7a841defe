"""A fairness snapshot as families."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from exporter.fairness.values import (
    FairnessMode,
    FairnessSettings,
    FairnessSnapshot,
    FairnessState,
    Payload,
    ServiceTimes,
    WorkspaceUsage,
)
from exporter.metrics.collect import Chosen, Scope
from tests.metrics.scenes import MONOTONIC, NOISY, NOW, QUIET, collected, fairness, snapshot, values


def exported(part: FairnessSnapshot, *, age: float = 0, limit: int = 100) -> Mapping[str, Mapping[str, float]]:
    scope = Scope(part.mode, max_workspaces=limit)
    found = values(collected(snapshot(part), scope=scope, now=MONOTONIC + age))
    return {name.removeprefix("windmill_fairness_"): samples for name, samples in found.items()}


def test_a_capped_cluster_is_exported_with_all_its_numbers() -> None:
    """The specification's figures: D_c = 34 s and D_u = 1 s at the target 0.65 give p_c = 0.0518."""
    found = exported(fairness())
    assert found["worker_seconds"] == {"noisy": 360, "quiet": 140}
    assert found["share_ratio"] == {"noisy": 0.72, "quiet": 0.28}
    assert found["capped"] == {"noisy": 1, "quiet": 0}
    assert found["capped_since_timestamp_seconds"] == {"noisy": NOW - 42.5}
    assert found["cluster_worker_seconds"] == {"": 500}
    assert found["capped_workspaces"] == {"": 1}
    assert found["admission_ppm"] == {"": 518}
    assert found["admission_ratio"] == {"": 0.0518}
    assert found["target_share_ratio"] == {"": 0.65}
    assert found["expected_share_ratio"][""] == pytest.approx(0.65)
    assert found["capped_share_ratio"] == {"": 0.72}
    assert found["mean_service_seconds"] == {"capped": 34, "uncapped": 1}
    assert found["other_worker_seconds"] == {"": 0}
    assert found["payload_updated_timestamp_seconds"] == {"": NOW - 1}


def test_the_settings_in_force_are_exported_in_their_own_units() -> None:
    settings = FairnessSettings(enabled=True, max_percent=60, window_seconds=15, min_total_worker_seconds=7)
    assert exported(fairness(settings=settings))["setting"] == {
        "enabled": 1,
        "max_percent": 60,
        "duration_seconds": 15,
        "min_total_worker_seconds": 7,
    }


def test_with_nobody_capped_every_pull_admits_whatever_is_stored() -> None:
    found = exported(fairness(in_force=Payload((), 5500)))
    assert found["admission_ppm"] == {"": 5500}
    assert found["admission_ratio"] == {"": 1}
    assert found["capped"] == {"noisy": 0, "quiet": 0}
    assert found["capped_share_ratio"] == {"": 0}
    assert found["capped_since_timestamp_seconds"] == {}


def test_a_stale_decision_holds_nobody_back() -> None:
    found = exported(fairness(payload_age_seconds=61.0))
    assert found["admission_ratio"] == {"": 1}
    assert found["admission_ppm"] == {"": 518}


def test_exactly_one_state_is_present() -> None:
    states = exported(fairness())["state"]
    assert states == {state.value: state is FairnessState.CAPPING for state in FairnessState}


def test_a_capped_workspace_without_usage_held_nothing() -> None:
    found = exported(fairness([QUIET]))
    assert found["worker_seconds"] == {"noisy": 0, "quiet": 140}
    assert found["share_ratio"] == {"noisy": 0, "quiet": 1}
    assert found["capped"] == {"noisy": 1, "quiet": 0}


def test_an_idle_cluster_has_shares_of_0_and_no_division_by_0() -> None:
    idle = WorkspaceUsage("idle", 0, ServiceTimes())
    found = exported(fairness([idle], in_force=Payload()))
    assert found["share_ratio"] == {"idle": 0}
    assert found["capped_share_ratio"] == {"": 0}


def test_without_completions_there_are_no_means_and_no_expected_share() -> None:
    found = exported(fairness([WorkspaceUsage("noisy", 10_000_000, ServiceTimes())]))
    assert found["mean_service_seconds"] == {}
    assert "expected_share_ratio" not in found


def test_shadow_shows_what_it_would_do_beside_what_is_in_force() -> None:
    found = exported(fairness(mode=FairnessMode.SHADOW, in_force=Payload(("quiet",), 700)))
    assert found["capped"] == {"noisy": 0, "quiet": 1}
    assert found["would_cap"] == {"noisy": 1, "quiet": 0}
    assert found["would_admission_ratio"][""] == pytest.approx(0.0518, abs=1e-4)
    assert found["admission_ratio"] == {"": 0.07}


def test_shadow_that_would_cap_nobody_would_admit_everything() -> None:
    found = exported(
        fairness([QUIET, WorkspaceUsage("other", QUIET.worker_micros, ServiceTimes())], mode=FairnessMode.SHADOW)
    )
    assert found["would_cap"] == {"other": 0, "quiet": 0}
    assert found["would_admission_ratio"] == {"": 1}


def test_enforce_shows_what_it_would_do_only_beside_another_writer() -> None:
    assert "would_cap" not in exported(fairness(ours=True))
    assert "would_admission_ratio" not in exported(fairness(ours=True))
    assert exported(fairness(ours=False))["would_cap"] == {"noisy": 1, "quiet": 0}


def test_old_usage_takes_what_derives_from_it_along_and_leaves_the_decision() -> None:
    found = exported(fairness(read_at=NOW - 31, mode=FairnessMode.SHADOW))
    assert found["capped"] == {"noisy": 1}
    assert found["admission_ratio"] == {"": 0.0518}
    assert {"worker_seconds", "share_ratio", "cluster_worker_seconds", "would_cap", "mean_service_seconds"}.isdisjoint(
        found
    )


def test_a_stale_snapshot_leaves_only_the_state() -> None:
    found = {name for name in exported(fairness(), age=31) if not name.startswith("windmill_exporter")}
    assert found == {"state"}


def test_an_unknown_payload_age_exports_no_time_of_the_decision() -> None:
    assert "payload_updated_timestamp_seconds" not in exported(fairness(payload_age_seconds=None))


def crowd(number: int) -> list[WorkspaceUsage]:
    return [WorkspaceUsage(f"ws-{each}", 1_000_000 + each, ServiceTimes()) for each in range(number)]


def test_left_out_workspaces_are_summed_up_and_counted_and_capped_ones_never_left_out() -> None:
    part = fairness([NOISY, *crowd(300)], in_force=Payload(("small",), 100))
    result = collected(snapshot(part), scope=Scope(FairnessMode.ENFORCE, max_workspaces=10))
    found = values(result)
    shares = found["windmill_fairness_worker_seconds"]
    assert len(shares) == 10
    assert shares["small"] == 0
    assert shares["noisy"] == 360
    total = found["windmill_fairness_cluster_worker_seconds"][""]
    assert sum(shares.values()) + found["windmill_fairness_other_worker_seconds"][""] == pytest.approx(total)
    dropped = {metric.family.name: metric.dropped for metric in result.metrics}
    assert dropped["windmill_fairness_worker_seconds"] == dropped["windmill_fairness_capped"] == 302 - 10
    assert dropped["windmill_fairness_capped_since_timestamp_seconds"] == 0


def test_what_the_reading_itself_summed_up_is_part_of_the_rest() -> None:
    part = fairness([NOISY], other_micros=40_000_000, other_workspaces=7)
    result = collected(snapshot(part))
    assert values(result)["windmill_fairness_other_worker_seconds"] == {"": 40}
    assert values(result)["windmill_fairness_share_ratio"] == {"noisy": 0.9}
    assert {metric.dropped for metric in result.metrics if metric.family.name == "windmill_fairness_share_ratio"} == {7}


def test_whom_we_would_cap_is_exported_even_when_a_crowd_is_larger() -> None:
    part = fairness([NOISY, *crowd(50)], mode=FairnessMode.SHADOW, in_force=Payload())
    result = collected(snapshot(part), scope=Scope(FairnessMode.SHADOW, max_workspaces=1))
    assert result.chosen == Chosen(workspaces=frozenset({"noisy"}))
