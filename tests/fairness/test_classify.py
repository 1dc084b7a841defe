"""Who is capped."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.fairness.classify import classify, transitions
from exporter.fairness.values import MAX_CAPPED_WORKSPACES, MICROS
from tests.sources import CASES

PUBLISHED = json.loads((CASES / "admission.json").read_text())["classify"]
usages = st.dictionaries(st.text(max_size=8), st.integers(0, 10**13), max_size=80)


@pytest.mark.parametrize("case", PUBLISHED)
def test_the_published_cases(case: dict[str, object]) -> None:
    micros = {name: seconds * MICROS for name, seconds in case["worker_seconds"].items()}  # type: ignore[attr-defined]
    capped = classify(
        micros,
        sum(micros.values()),
        max_percent=case["max_percent"],  # type: ignore[arg-type]
        min_total_worker_seconds=case["min_total"],  # type: ignore[arg-type]
    )
    assert list(capped) == case["capped"]


@pytest.mark.parametrize(("seconds", "capped"), [(3.9, ()), (4.0, ("lone",)), (4.1, ("lone",))])
def test_the_floor_is_met_exactly(seconds: float, capped: tuple[str, ...]) -> None:
    """Field case F56."""
    micros = round(seconds * MICROS)
    assert classify({"lone": micros}, micros, max_percent=50, min_total_worker_seconds=4) == capped


@given(usages, st.integers(1, 100), st.integers(0, 100))
def test_exactly_those_at_or_above_the_threshold_are_capped(
    usage: dict[str, int], max_percent: int, floor: int
) -> None:
    total = sum(usage.values())
    capped = classify(usage, total, max_percent=max_percent, min_total_worker_seconds=floor)
    over = {name for name, micros in usage.items() if micros > 0 and micros * 100 >= max_percent * total}
    if total < floor * MICROS:
        assert capped == ()
    elif len(over) <= MAX_CAPPED_WORKSPACES:
        assert set(capped) == over
    assert len(capped) <= MAX_CAPPED_WORKSPACES
    assert list(capped) == sorted(capped, key=lambda name: (-usage[name], name))


@given(usages, st.integers(1, 100))
def test_the_order_of_the_rows_does_not_matter(usage: dict[str, int], max_percent: int) -> None:
    backwards = dict(reversed(usage.items()))
    total = sum(usage.values())
    assert classify(usage, total, max_percent=max_percent, min_total_worker_seconds=0) == classify(
        backwards, total, max_percent=max_percent, min_total_worker_seconds=0
    )


def test_at_most_64_are_capped_and_the_largest_of_them() -> None:
    """With a cap of 1 %, as many as a hundred tenants reach it."""
    micros = {f"w{number:02}": 1_000_000 + number for number in range(90)}
    capped = classify(micros, sum(micros.values()), max_percent=1, min_total_worker_seconds=4)
    assert capped == tuple(f"w{number:02}" for number in range(89, 25, -1))


@given(st.lists(st.text(max_size=3)), st.lists(st.text(max_size=3)))
def test_transitions_turn_the_previous_set_into_the_current_one(before: list[str], after: list[str]) -> None:
    entered, left = transitions(before, after)
    assert (set(before) | set(entered)) - set(left) == set(after)
    assert not set(entered) & set(before)
    assert not set(left) & set(after)
    assert len(set(entered)) == len(entered)
