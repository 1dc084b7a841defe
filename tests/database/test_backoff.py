"""Pauses after failures grow with jitter, from one second to thirty."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exporter.database.backoff import MAX_SECONDS, Backoff, backoff_seconds
from tests.database.targets import Clock


@given(failures=st.integers(1, 10_000), uniform=st.floats(0, 1))
def test_a_pause_is_never_under_a_second_nor_over_thirty(failures: int, uniform: float) -> None:
    assert 1.0 <= backoff_seconds(failures, uniform) <= MAX_SECONDS


def test_pauses_double_with_jitter() -> None:
    assert [backoff_seconds(n, 0.0) for n in range(1, 8)] == [1, 2, 4, 8, 16, 24, 24]
    assert [backoff_seconds(n, 1.0) for n in range(1, 8)] == [1.25, 2.5, 5, 10, 20, 30, 30]


def test_a_success_ends_the_pause() -> None:
    clock = Clock()
    backoff = Backoff(clock, lambda: 0.0)
    assert backoff.remaining_seconds == 0
    backoff.failed()
    clock.now += 0.25
    assert backoff.remaining_seconds == 0.75
    backoff.succeeded()
    assert backoff.remaining_seconds == 0
