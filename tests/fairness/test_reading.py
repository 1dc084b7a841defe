"""The reading as the fleet shares it: bounded, round, and safe to read whatever stands in the row."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.fairness.reading import (
    MAX_OWED,
    MAX_STORED_WORKSPACES,
    StoredReading,
    build_reading,
    parse_reading,
    summed_up,
)
from exporter.fairness.values import FairnessReading, OwedAudit, Payload, ServiceTimes, WorkspaceUsage
from tests.strategies import json_values

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
usage = st.builds(
    WorkspaceUsage,
    names,
    st.integers(0, 10**12),
    st.builds(ServiceTimes, st.integers(0, 10**6), st.floats(0, 10**7)),
)
owed = st.builds(OwedAudit, names, names, st.floats(1e9, 2e9), st.none() | st.dictionaries(names, names, max_size=3))
readings = st.builds(
    FairnessReading,
    read_at=st.floats(1e9, 2e9),
    by=names,
    window_seconds=st.integers(1, 86_400),
    usage=st.lists(usage, max_size=5, unique_by=lambda one: one.workspace).map(tuple),
    other_micros=st.integers(0, 10**12),
    other_workspaces=st.integers(0, 1000),
    capped_since=st.dictionaries(names, st.floats(1e9, 2e9), max_size=3),
    owed=st.lists(owed, max_size=3).map(tuple),
    decided=st.none() | st.builds(Payload, st.lists(names, unique=True).map(tuple), st.integers(0, 10_000)),
)


@given(readings)
def test_what_is_stored_is_read_back(reading: FairnessReading) -> None:
    assert parse_reading(build_reading(reading)) == StoredReading(reading, reading.owed)


@given(json_values)
def test_no_stored_value_raises(value: object) -> None:
    parse_reading(json.dumps(value))


@given(readings, st.sampled_from(["usage", "other", "since", "at", "by", "decided", "window_seconds"]), json_values)
def test_a_damaged_row_never_raises_and_keeps_what_is_owed(reading: FairnessReading, key: str, value: object) -> None:
    stored = json.loads(build_reading(reading)) | {key: value}
    assert parse_reading(json.dumps(stored)).owed == reading.owed


@given(readings)
def test_a_later_version_is_no_reading_but_keeps_what_is_owed(reading: FairnessReading) -> None:
    stored = json.loads(build_reading(reading)) | {"version": 2}
    assert parse_reading(json.dumps(stored)) == StoredReading(None, reading.owed)


def test_thousands_of_workspaces_are_summed_up_without_losing_worker_time() -> None:
    many = [WorkspaceUsage(f"w{number}", number, ServiceTimes(1, 0.5)) for number in range(3000)]
    reading = summed_up(many, read_at=1.0, by="test", window_seconds=10)
    assert len(reading.usage) == MAX_STORED_WORKSPACES
    assert reading.usage[0].workspace == "w2999"
    assert reading.total_micros == sum(range(3000))
    assert reading.other_workspaces == 2500
    assert reading.other_service == ServiceTimes(2500, 1250.0)


def test_owed_rows_are_bounded_to_the_newest() -> None:
    many = tuple(OwedAudit("op", f"w{number}", 1.0, None) for number in range(MAX_OWED + 100))
    reading = FairnessReading(1.0, "test", 10, (), owed=many)
    assert parse_reading(build_reading(reading)).owed == many[100:]


@pytest.mark.parametrize("text", [None, "", "null", "[]", "{}", '{"version":1}', "not json"])
def test_nothing_readable_is_no_reading(text: str | None) -> None:
    assert parse_reading(text) == StoredReading()
