"""Queries read families in the one way that is right with several replicas."""

from __future__ import annotations

import pytest

from dashboards.promql import PANELS, RULES
from exporter.metrics import families


def test_a_value_of_the_database_is_the_maximum_over_replicas() -> None:
    assert PANELS.gauge(families.WAITING, "tag") == 'max by (tag) (windmill_queue_waiting_jobs{job="$job"})'
    assert PANELS.gauge(families.ADMISSION) == 'max (windmill_fairness_admission_ratio{job="$job"})'


def test_rules_keep_clusters_apart() -> None:
    assert RULES.gauge(families.WAITING, "tag") == "max by (job, tag) (windmill_queue_waiting_jobs)"
    assert RULES.on("tag") == "on (job, tag)"


def test_work_of_replicas_adds_up() -> None:
    expected = 'sum by (result) (rate(windmill_queue_samples_total{job="$job"}[5m]))'
    assert PANELS.rate(families.SAMPLES, "result", window="5m") == expected
    expected = "sum by (job) (increase(windmill_fairness_audit_failures_total[15m]))"
    assert RULES.increase(families.AUDIT_FAILURES, window="15m") == expected


def test_a_condition_of_replicas_is_read_as_the_worst_or_the_best() -> None:
    where = 'collector="queue"'
    family = families.COLLECTOR_SUCCESS
    selector = 'windmill_exporter_collector_success{job="$job", collector="queue"}'
    assert PANELS.worst(family, where=where) == f"min ({selector})"
    assert PANELS.best(family, where=where) == f"max ({selector})"


def test_nothing_is_only_zero_while_there_is_a_reading() -> None:
    expected = 'count(x) or 0 * max (windmill_queue_other_waiting_jobs{job="$job"})'
    assert PANELS.or_zero("count(x)", families.OTHER_WAITING) == expected


def test_a_value_of_the_database_is_never_summed_up() -> None:
    with pytest.raises(ValueError, match="windmill_queue_waiting_jobs is no counter"):
        PANELS.rate(families.WAITING, window="5m")
    with pytest.raises(ValueError, match="windmill_queue_waiting_jobs is no gauge"):
        PANELS.worst(families.WAITING)


def test_there_is_no_one_value_of_what_replicas_do() -> None:
    with pytest.raises(ValueError, match="windmill_queue_samples_total belongs to each replica"):
        PANELS.gauge(families.SAMPLES)
