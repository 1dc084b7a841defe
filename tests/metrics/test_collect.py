"""The status families, and what a replica exports at all."""

from __future__ import annotations

from dataclasses import replace

from exporter.fairness.values import FairnessMode
from exporter.metrics.collect import Chosen, Scope
from exporter.metrics.values import Origin
from exporter.snapshot import CollectorStatus, Snapshot
from tests.metrics.scenes import MONOTONIC, NOW, collected, fairness, full_snapshot, queue, snapshot, tag, values


def test_before_the_first_reading_every_collector_is_there_and_failing() -> None:
    """Field case F82: an alert on success = 0 can fire although the database was never reached."""
    found = values(collected(snapshot(up=False)))
    assert found["windmill_exporter_collector_success"] == {"fairness": 0, "queue": 0, "retention": 0}
    assert found["windmill_exporter_collector_last_success_timestamp_seconds"] == {
        "fairness": 0,
        "queue": 0,
        "retention": 0,
    }
    assert found["windmill_exporter_up"] == {"": 0}
    assert sum(found["windmill_fairness_state"].values()) == 1


def test_working_collectors_say_so_and_since_when() -> None:
    found = values(collected(full_snapshot()))
    assert found["windmill_exporter_collector_success"] == {"fairness": 1, "queue": 1, "retention": 1}
    assert found["windmill_exporter_collector_last_success_timestamp_seconds"]["queue"] == NOW
    assert found["windmill_exporter_up"] == {"": 1}


def test_success_ends_with_freshness_even_when_nobody_noted_a_failure() -> None:
    found = values(collected(full_snapshot(), now=MONOTONIC + 31))
    assert found["windmill_exporter_collector_success"] == {"fairness": 0, "queue": 0, "retention": 1}


def test_one_broken_collector_does_not_take_the_other_along() -> None:
    """Field case F31: the broken one has success 0 under its own label, the other's values stay."""
    broken = CollectorStatus("fairness", success=False, problem="v2_job_runtime is missing", reason="missing_table")
    state = replace(full_snapshot(), fairness=None, collectors=(broken, CollectorStatus("queue", success=True)))
    found = values(collected(state))
    assert found["windmill_exporter_collector_success"] == {"fairness": 0, "queue": 1}
    assert found["windmill_queue_waiting_jobs"]
    assert "windmill_fairness_worker_seconds" not in found


def test_a_collector_that_is_not_configured_has_no_series() -> None:
    """A mode that is off must not look like a failure."""
    found = values(collected(Snapshot((CollectorStatus("queue", success=True),), None, queue())))
    assert found["windmill_exporter_collector_success"] == {"queue": 1}


def test_without_cluster_a_replica_exports_only_itself() -> None:
    result = collected(full_snapshot(), scope=Scope(FairnessMode.ENFORCE, cluster=False))
    assert {metric.family.origin for metric in result.metrics} == {Origin.REPLICA}
    assert result.chosen == Chosen()


def test_replicas_that_look_at_different_times_export_the_same_cluster() -> None:
    """Field case F83: database-derived values are equal on every replica until the next reading."""
    early = snapshot(fairness(), queue([tag("default", 9)]))
    late = snapshot(
        fairness(observed_monotonic=MONOTONIC + 7), queue([tag("default", 9)], observed_monotonic=MONOTONIC + 4)
    )
    assert values(collected(early)) == values(collected(late, now=MONOTONIC + 9))


def test_the_choice_of_labels_survives_a_gap() -> None:
    kept = Chosen(frozenset({"w"}), frozenset({"v"}), frozenset({"t"}))
    assert collected(full_snapshot(), now=MONOTONIC + 31, previous=kept).chosen == kept
