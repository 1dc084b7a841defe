"""Shares by workspace: who is shown, in which order, how marked, and what the rest sums up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.fairness.values import Payload, ServiceTimes, WorkspaceUsage
from exporter.queue.values import QueueReading, WorkspaceWait
from exporter.web.status.shares import shares
from exporter.web.status.values import Clocks, Mark, Shares
from tests.metrics.scenes import MONOTONIC, NOISY, NOW, QUIET, fairness, queue
from tests.web.status.scenes import CLOCKS, ENABLED, in_shadow

WAITS = (WorkspaceWait("quiet", 7, NOW - 90), WorkspaceWait("starved", 2, NOW - 30))


def table(
    held: Sequence[WorkspaceUsage] = (NOISY, QUIET),
    *,
    waits: QueueReading | None = None,
    limit: int = 20,
    clocks: Clocks = CLOCKS,
    **scene: Any,
) -> Shares:
    found = shares(fairness(held, **{"settings": ENABLED, **scene}), waits, clocks, limit)
    assert found is not None
    return found


def usage(name: str, seconds: float) -> WorkspaceUsage:
    return WorkspaceUsage(name, round(seconds * 1_000_000), ServiceTimes())


def test_a_row_has_share_worker_seconds_and_since_when_it_is_capped() -> None:
    noisy, quiet = table().rows
    assert (noisy.workspace, noisy.share, noisy.worker_seconds, noisy.mark) == ("noisy", 0.72, 360.0, Mark.CAPPED)
    assert noisy.since is not None
    assert (noisy.since.at, noisy.since.age_seconds) == (NOW - 42.5, 42.5)
    assert (quiet.mark, quiet.since) == (Mark.NONE, None)


def test_who_waits_is_shown_beside_who_holds_the_workers() -> None:
    rows = {row.workspace: row for row in table(waits=queue(workspaces=WAITS).reading).rows}
    assert (rows["quiet"].waiting, rows["quiet"].longest_wait_seconds) == (7, 90.0)
    assert (rows["starved"].share, rows["starved"].waiting) == (0.0, 2)
    assert (rows["noisy"].waiting, rows["noisy"].longest_wait_seconds) == (0, None)


def test_a_wait_that_begins_after_its_reading_is_not_negative() -> None:
    [_, quiet] = table(waits=queue(workspaces=[WorkspaceWait("quiet", 1, NOW + 5)]).reading).rows
    assert quiet.longest_wait_seconds == 0.0


def test_only_a_watching_replica_marks_whom_it_would_cap() -> None:
    beside = shares(in_shadow(), None, CLOCKS, 20)
    assert beside is not None
    assert [row.mark for row in beside.rows] == [Mark.WOULD_BE_CAPPED, Mark.NONE]
    assert [row.mark for row in table(in_force=Payload()).rows] == [Mark.NONE, Mark.NONE]
    assert [row.mark for row in table(ours=False).rows] == [Mark.CAPPED, Mark.NONE]


def test_a_capped_workspace_has_a_row_although_it_holds_nothing() -> None:
    rows = table([usage(str(number), 10) for number in range(50)], in_force=Payload(("gone",), 10), limit=3).rows
    assert (rows[0].workspace, rows[0].share, rows[0].mark) == ("gone", 0.0, Mark.CAPPED)
    assert len(rows) == 3


def test_the_largest_are_shown_and_the_others_summed_up() -> None:
    many = [usage(f"w{number:02}", 100 - number) for number in range(30)]
    found = table(many, in_force=Payload(), limit=4, other_micros=15_000_000, other_workspaces=70)
    assert [row.workspace for row in found.rows] == ["w00", "w01", "w02", "w03"]
    assert found.other_workspaces == 26 + 70
    assert sum(row.share for row in found.rows) + found.other_share == pytest.approx(1.0)


def test_rows_keep_their_places_while_shares_change_a_little() -> None:
    first = table([usage("a", 31), usage("b", 33), usage("c", 36)], in_force=Payload(), other_micros=20_000_000)
    later = table([usage("a", 36), usage("b", 31), usage("c", 33)], in_force=Payload(), other_micros=20_000_000)
    assert [row.workspace for row in first.rows] == ["a", "b", "c"] == [row.workspace for row in later.rows]


def test_the_age_of_the_reading_is_the_database_s_and_goes_on_here() -> None:
    found = table(read_at=NOW - 3, clocks=Clocks(MONOTONIC + 4, 0))
    assert (found.read.at, found.read.age_seconds) == (NOW - 3, 7.0)


def test_without_a_reading_there_are_no_shares() -> None:
    assert shares(fairness(with_reading=False), None, CLOCKS, 20) is None


def test_an_empty_cluster_has_no_rows_and_no_share_of_nothing() -> None:
    found = table([], in_force=Payload())
    assert (found.rows, found.total_worker_seconds, found.other_share) == ((), 0.0, 0.0)


@given(
    st.lists(st.tuples(st.text(max_size=5), st.integers(0, 10**12)), unique_by=lambda pair: pair[0]),
    st.integers(1, 10),
    st.integers(0, 10**12),
)
def test_shown_and_summed_up_are_always_everybody(pairs: list[tuple[str, int]], limit: int, others: int) -> None:
    rows = [replace(QUIET, workspace=name, worker_micros=micros) for name, micros in pairs]
    found = table(rows, in_force=Payload(), limit=limit, other_micros=others, other_workspaces=5)
    assert len(found.rows) == min(limit, len(pairs))
    assert len(found.rows) + found.other_workspaces == len(pairs) + 5
    total = sum(micros for _, micros in pairs) + others
    assert sum(row.share for row in found.rows) + found.other_share == pytest.approx(1.0 if total else 0.0)


def test_the_cap_is_a_ratio() -> None:
    assert table([NOISY]).cap == 0.5
