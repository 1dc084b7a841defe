"""The table of families: an interface, linted, complete and documented."""

from __future__ import annotations

import re

import pytest

from exporter.metrics import families
from exporter.metrics.families import FAMILIES
from exporter.metrics.reference import reference_table
from exporter.metrics.values import Family, FamilyType, Origin
from tests.metrics.scenes import collected, full_snapshot, own_metrics

RESERVED = ("_count", "_sum", "_total", "_bucket", "_info", "_created")


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_a_family_is_named_as_prometheus_and_openmetrics_demand(family: Family) -> None:
    """Field case F53: own prefix, no reserved suffix on a gauge, `_total` on every counter, the unit as the suffix."""
    assert re.fullmatch(r"(windmill|process|python_gc)_[a-z_]+", family.name)
    if family.type is FamilyType.COUNTER:
        assert family.name.endswith("_total")
    elif family.name != "windmill_exporter_build_info":
        assert not family.name.endswith(RESERVED)
    assert family.stem.endswith(family.unit)
    assert family.help.endswith(".")
    assert "\n" not in family.help


def test_no_name_is_one_that_windmill_itself_exports() -> None:
    """Field case F53: `queue_count` and the like belong to Windmill's Enterprise edition."""
    assert not [name for name in FAMILIES if name.startswith(("queue_", "worker_"))]


def test_no_two_families_can_have_a_sample_name_in_common() -> None:
    names = [name for family in FAMILIES.values() for name in {family.stem, *family.sample_names}]
    assert len(names) == len(set(names))


def test_no_label_says_which_replica_it_is() -> None:
    """Field case F83: Prometheus adds that label; ours would make equal values differ."""
    labels = {label for family in FAMILIES.values() for label in family.labels}
    assert labels.isdisjoint({"pod", "replica", "instance", "job", "host", "le"})


def test_exactly_the_declared_families_are_produced() -> None:
    own = own_metrics()
    produced = [metric.family for metric in [*collected(full_snapshot()).metrics, *own.metrics()]]
    produced.append(families.SERIES_DROPPED)
    assert sorted(family.name for family in produced) == list(FAMILIES)


def test_every_family_of_the_full_scene_has_a_sample() -> None:
    assert [metric.family.name for metric in collected(full_snapshot()).metrics if not metric.samples] == []


def test_a_second_declaration_of_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="windmill_exporter_up is declared twice"):
        families._declare(Family("windmill_exporter_up", FamilyType.GAUGE, "", (), "Again.", Origin.REPLICA))


def test_the_reference_has_one_row_a_family_in_the_order_of_names() -> None:
    rows = reference_table().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(FAMILIES)
    assert all(row.count(" | ") == 4 for row in rows)


def test_the_reference_says_how_to_read_a_value_across_replicas() -> None:
    """Field case F83: the cluster's values with max, counters of one replica by themselves."""
    rows = {row.split("`")[1]: row for row in reference_table().splitlines()[2:]}
    assert "| gauge | `tag` | `max` |" in rows["windmill_queue_waiting_jobs"]
    assert "| counter | `result` | each by itself |" in rows["windmill_queue_samples_total"]


def test_the_limited_families_are_those_by_workspace_and_by_tag() -> None:
    assert "windmill_queue_workers" in families.LIMITED
    assert "windmill_fairness_would_cap" in families.LIMITED
    assert "windmill_fairness_state" not in families.LIMITED
    assert "windmill_fairness_refreshes_total" not in families.LIMITED
