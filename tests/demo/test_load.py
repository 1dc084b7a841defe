"""The load is the same for the same seed, and asks for what its figures say."""

from __future__ import annotations

from collections import Counter
from itertools import islice, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.demo.load import (
    NOISY,
    NOISY_JOB_SECONDS,
    QUIET_JOB_SECONDS,
    SERVED_TAGS,
    UNSERVED_TAG,
    UNSERVED_WORKSPACE,
    Load,
    arrivals,
    flood,
)

COMPARED = Load(quiet_tenants=10)


@given(st.integers())
def test_a_seed_fixes_the_whole_load(seed: int) -> None:
    assert [*islice(arrivals(COMPARED, seed), 50)] == [*islice(arrivals(COMPARED, seed), 50)]
    assert [*islice(flood(seed), 50)] == [*islice(flood(seed), 50)]


def test_another_seed_is_another_load() -> None:
    assert next(arrivals(COMPARED, 1)) != next(arrivals(COMPARED, 2))
    assert next(flood(1)) != next(flood(2))


def test_jobs_arrive_in_order_of_time() -> None:
    times = [arrival.at_seconds for arrival in islice(arrivals(COMPARED, 1), 1000)]
    assert times == sorted(times)
    assert times[0] > 0


@pytest.mark.parametrize("quiet_percent", [30.0, 100.0])
def test_the_quiet_tenants_ask_for_their_part_of_the_workers(quiet_percent: float) -> None:
    load = Load(workers=50, quiet_tenants=10, quiet_percent=quiet_percent)
    jobs = takewhile(lambda arrival: arrival.at_seconds < 60, arrivals(load, 1))
    worker_seconds = sum(job.duration_seconds for job in jobs if job.workspace in load.quiet_workspaces)
    assert worker_seconds == pytest.approx(50 * 60 * quiet_percent / 100, rel=0.05)


def test_every_quiet_tenant_asks_for_about_the_same() -> None:
    jobs = Counter(arrival.workspace for arrival in islice(arrivals(COMPARED, 1), 10_000))
    del jobs[UNSERVED_WORKSPACE]
    assert sorted(jobs) == sorted(COMPARED.quiet_workspaces)
    assert max(jobs.values()) < 1.3 * min(jobs.values())


def test_one_tag_is_served_by_nobody_and_comes_slowly() -> None:
    hour = takewhile(lambda arrival: arrival.at_seconds < 600, arrivals(COMPARED, 1))
    unserved = [arrival for arrival in hour if arrival.tag not in SERVED_TAGS]
    assert {(arrival.workspace, arrival.tag) for arrival in unserved} == {(UNSERVED_WORKSPACE, UNSERVED_TAG)}
    assert len(unserved) == pytest.approx(300, rel=0.2)


def test_noisy_jobs_are_34_times_as_long_as_quiet_ones() -> None:
    noisy = [*islice(flood(1), 2000)]
    assert {job.workspace for job in noisy} == {NOISY}
    assert sum(job.duration_seconds for job in noisy) / 2000 == pytest.approx(3.4, rel=0.02)
    assert pytest.approx(34 * QUIET_JOB_SECONDS) == NOISY_JOB_SECONDS


def test_the_backlog_outlasts_the_run_when_the_noisy_tenant_gets_every_worker() -> None:
    load = Load(workers=50, backlog_seconds=60)
    longest = sum(job.duration_seconds for job in islice(flood(1), load.backlog))
    assert longest > 50 * 60


def test_a_single_quiet_tenant_and_a_single_worker_are_a_load_too() -> None:
    load = Load(workers=1, quiet_tenants=1)
    assert load.quiet_workspaces == ("quiet-1",)
    assert load.quiet_jobs_per_second == pytest.approx(3)
