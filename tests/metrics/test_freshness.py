"""What is too old is not exported as if it were new."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exporter.fairness.values import FairnessMode, FairnessState
from exporter.metrics.freshness import Freshness, freshness
from exporter.snapshot import CollectorStatus, Snapshot
from tests.metrics.scenes import MONOTONIC, NOW, fairness, full_snapshot, queue, snapshot


def fresh_at(state: Snapshot, age: float) -> Freshness:
    return freshness(state, FairnessMode.ENFORCE, MONOTONIC + age)


def test_a_new_snapshot_is_fresh() -> None:
    assert fresh_at(full_snapshot(), 0) == Freshness(fairness=True, usage=True, queue=True, state=FairnessState.CAPPING)


@pytest.mark.parametrize(("age", "expected"), [(30.0, True), (30.1, False)])
def test_both_parts_turn_stale_after_three_intervals_but_never_before_30_seconds(age: float, expected: bool) -> None:
    fresh = fresh_at(full_snapshot(), age)
    assert (fresh.fairness, fresh.usage, fresh.queue) == (expected,) * 3


def test_a_long_interval_makes_the_stale_age_longer() -> None:
    slow = snapshot(None, replace(queue(), interval_seconds=60.0))
    assert fresh_at(slow, 179).queue
    assert not fresh_at(slow, 181).queue


def test_usage_that_was_old_when_it_was_seen_turns_stale_earlier() -> None:
    """Another replica read 20 s before we looked: 11 s later it is too old, whenever we looked."""
    state = snapshot(fairness(read_at=NOW - 20))
    assert fresh_at(state, 9).usage
    assert not fresh_at(state, 11).usage
    assert fresh_at(state, 11).fairness


def test_a_queue_that_was_read_long_before_it_was_seen_turns_stale_earlier() -> None:
    """However often a replica looks at it: the reading is what ages."""
    state = snapshot(None, replace(queue(), now=NOW + 20))
    assert fresh_at(state, 9).queue
    assert not fresh_at(state, 11).queue
    assert fresh_at(snapshot(None, replace(queue(), now=NOW - 3600)), 29).queue


def test_usage_from_the_future_is_not_fresher_than_our_look_at_it() -> None:
    state = snapshot(fairness(read_at=NOW + 3600))
    assert fresh_at(state, 29).usage
    assert not fresh_at(state, 31).usage


def test_what_was_never_read_is_not_fresh() -> None:
    never = Freshness(fairness=False, usage=False, queue=False, state=FairnessState.FAILED)
    assert fresh_at(snapshot(), 0) == never
    assert not fresh_at(snapshot(fairness(with_reading=False)), 0).usage


def test_a_decision_older_than_a_minute_is_the_stale_state() -> None:
    state = snapshot(fairness(payload_age_seconds=59.0))
    assert fresh_at(state, 0.5).state is FairnessState.CAPPING
    assert fresh_at(state, 1.5).state is FairnessState.STALE


def test_a_failing_collector_is_the_failed_state() -> None:
    state = replace(full_snapshot(), collectors=(CollectorStatus("fairness", success=False, reason="deadline"),))
    assert fresh_at(state, 0).state is FairnessState.FAILED


def test_without_the_fairness_collector_the_state_is_off() -> None:
    assert freshness(Snapshot(), FairnessMode.OFF, MONOTONIC).state is FairnessState.OFF
