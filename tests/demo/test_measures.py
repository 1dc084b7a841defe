"""Percentiles, waits and shares follow from the workers' records alone."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.demo.measures import Run, Waiting, Waits, measure_waits, percentile, share_of_worker_time

QUIET = {"quiet-1", "quiet-2"}


class TestPercentile:
    @pytest.mark.parametrize(
        ("percent", "expected"), [(0, 1), (1, 1), (50, 50), (50.5, 51), (95, 95), (99, 99), (100, 100)]
    )
    def test_it_is_the_nearest_rank(self, percent: float, expected: float) -> None:
        assert percentile(range(1, 101), percent) == expected

    def test_of_one_value_it_is_that_value(self) -> None:
        assert [percentile([7.0], percent) for percent in (0, 50, 99, 100)] == [7.0] * 4

    def test_of_nothing_there_is_none(self) -> None:
        assert percentile([], 95) is None

    @given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 100))
    def test_so_many_values_do_not_exceed_it(self, values: list[float], percent: float) -> None:
        ordered = sorted(values)
        value = percentile(ordered, percent)
        assert value is not None
        assert sum(other <= value for other in ordered) >= math.floor(len(ordered) * percent / 100)
        assert value in ordered


class TestWaits:
    def test_a_started_job_waited_from_its_arrival_to_its_start(self) -> None:
        runs = [Run("quiet-1", 21.0, 24.0, 25.0), Run("quiet-2", 22.0, 22.5, None)]
        assert measure_waits(runs, [], QUIET, 20, 60) == Waits(0.5, 3.0, 3.0)

    def test_a_job_that_was_not_started_counts_with_its_age(self) -> None:
        waiting = [Waiting("quiet-1", 30.0, 0.1)]
        assert measure_waits([], waiting, QUIET, 20, 60) == Waits(30.0, 30.0, 30.0)

    def test_jobs_that_arrived_before_the_window_are_left_out(self) -> None:
        runs = [Run("quiet-1", 19.9, 50.0, 51.0)]
        waiting = [Waiting("quiet-1", 3.0, 0.1)]
        assert measure_waits(runs, waiting, QUIET, 20, 60) == Waits(None, None, None)

    def test_other_tenants_are_left_out(self) -> None:
        runs = [Run("noisy", 21.0, 59.0, None)]
        waiting = [Waiting("research", 25.0, 0.1)]
        assert measure_waits(runs, waiting, QUIET, 20, 60) == Waits(None, None, None)

    def test_percentiles_are_in_order(self) -> None:
        runs = [Run("quiet-1", 20.0, 20.0 + wait, None) for wait in range(100)]
        assert measure_waits(runs, [], QUIET, 20, 200) == Waits(49.0, 94.0, 98.0)


class TestShare:
    def test_runs_are_cut_at_both_ends_of_the_window(self) -> None:
        runs = [Run("noisy", 0.0, 10.0, 30.0), Run("quiet-1", 0.0, 50.0, 90.0)]
        assert share_of_worker_time(runs, "noisy", 20, 60) == pytest.approx(0.5)

    def test_a_running_job_holds_its_worker_to_the_end(self) -> None:
        runs = [Run("noisy", 0.0, 30.0, None), Run("quiet-1", 0.0, 20.0, 30.0)]
        assert share_of_worker_time(runs, "noisy", 20, 60) == pytest.approx(0.75)

    def test_a_job_outside_the_window_holds_nothing(self) -> None:
        runs = [Run("noisy", 0.0, 1.0, 19.0), Run("quiet-1", 0.0, 20.0, 30.0), Run("noisy", 0.0, 61.0, None)]
        assert share_of_worker_time(runs, "noisy", 20, 60) == 0.0

    def test_when_nobody_held_a_worker_there_is_no_share(self) -> None:
        assert share_of_worker_time([], "noisy", 20, 60) is None
