"""Timers keep their rhythm and never pile up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.timer import Timer


def test_the_first_tick_is_due_at_once() -> None:
    assert Timer(10.0).due_in(5.0) == 0.0


def test_ticks_keep_their_rhythm_however_long_one_takes() -> None:
    timer = Timer(10.0)
    timer.begin(100.0)
    assert timer.due_in(103.0) == 7.0
    timer.begin(110.5)
    assert timer.due_in(110.5) == pytest.approx(9.5)


def test_missed_ticks_are_skipped() -> None:
    timer = Timer(10.0)
    timer.begin(100.0)
    timer.begin(157.0)
    assert timer.due_in(157.0) == pytest.approx(3.0)


def test_a_tick_can_be_had_sooner_but_never_later() -> None:
    timer = Timer(600.0)
    timer.begin(0.0)
    timer.hasten(30.0)
    assert timer.due_in(10.0) == 20.0
    timer.hasten(900.0)
    assert timer.due_in(10.0) == 20.0
    timer.begin(30.0)
    assert timer.due_in(30.0) == 600.0


@given(st.floats(0.5, 20), st.lists(st.floats(0, 100), max_size=40))
def test_the_next_tick_always_lies_within_one_interval(interval: float, steps: list[float]) -> None:
    timer, now = Timer(interval), 0.0
    for step in steps:
        now += step
        timer.begin(now)
        assert 0 <= timer.due_in(now) <= interval * 1.001
