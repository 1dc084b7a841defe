"""The process's own guard: one attempt at a time, and never more often for having failed."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from exporter.fairness.gate import Cadence, Gate


def test_the_first_attempt_is_due_at_once() -> None:
    assert Gate().due_in(1000.0, 5.0) == 0.0


def test_no_second_attempt_while_one_is_in_flight() -> None:
    gate = Gate()
    assert gate.enter(0.0, 5.0)
    assert not gate.enter(100.0, 5.0)


def test_a_failed_attempt_cools_down_like_any_other() -> None:
    gate = Gate()
    gate.enter(0.0, 5.0)
    gate.leave()
    assert not gate.enter(4.9, 5.0)
    assert gate.enter(5.0, 5.0)


def test_the_claim_moves_the_attempt() -> None:
    gate = Gate()
    gate.enter(0.0, 5.0)
    gate.stamp(1.5)
    gate.leave()
    assert gate.due_in(2.0, 5.0) == 4.5


@given(st.lists(st.floats(0, 3), max_size=50))
def test_attempts_are_never_closer_than_the_interval(steps: list[float]) -> None:
    gate, now, begun = Gate(), 0.0, []
    for step in steps:
        now += step
        if gate.enter(now, 2.0):
            begun.append(now)
            gate.leave()
    assert all(later - earlier >= 2.0 - 1e-9 for earlier, later in itertools.pairwise(begun))


def test_the_cadence_is_shorter_while_somebody_is_capped() -> None:
    assert (Cadence().interval(capped=True), Cadence().interval(capped=False)) == (2.0, 5.0)
