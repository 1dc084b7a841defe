"""`GET /api/fairness`: what explains the present."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest
from aiohttp import ClientSession
from hypothesis import given
from hypothesis import strategies as st

from exporter.fairness.values import (
    FairnessMode,
    FairnessSettings,
    FairnessState,
    Payload,
    RefreshResult,
    ServiceTimes,
    SettingSource,
    WorkspaceUsage,
)
from exporter.snapshot import CollectorStatus, Snapshot
from exporter.web.fairness import explain
from tests.metrics.scenes import MONOTONIC, NOW, fairness, snapshot
from tests.web.serving import Service

SOURCES = {
    "workspace_fairness_enabled": SettingSource.FILE,
    "workspace_fairness_max_percent": SettingSource.DATABASE,
    "workspace_fairness_duration_secs": SettingSource.DEFAULT,
    "workspace_fairness_min_total_jobs": SettingSource.DATABASE,
}
SETTINGS = FairnessSettings(enabled=True, max_percent=60, sources=SOURCES)


def test_everything_that_explains_a_cap_is_there() -> None:
    state = replace(snapshot(fairness(settings=SETTINGS)), replica="replica-1", refresh=RefreshResult.WON)
    answer = json.loads(msgspec.json.encode(explain(state, MONOTONIC + 2)))
    assert answer == {
        "state": "capping",
        "mode": "enforce",
        "settings": {
            "workspace_fairness_enabled": {"value": True, "source": "file"},
            "workspace_fairness_max_percent": {"value": 60, "source": "database"},
            "workspace_fairness_duration_secs": {"value": 10, "source": "default"},
            "workspace_fairness_min_total_jobs": {"value": 4, "source": "database"},
        },
        "target_share": 0.65,
        "capped": ["noisy"],
        "admission_ppm": 518,
        "payload_age_seconds": 3.0,
        "refreshed_by": "replica-1",
        "refreshed_by_us": True,
        "decision": {
            "capped": ["noisy"],
            "admission_ppm": 518,
            "expected_share": pytest.approx(0.65),
            "capped_mean_seconds": 34.0,
            "uncapped_mean_seconds": 1.0,
        },
        "usage": {
            "time": int(NOW * 1000),
            "age_seconds": 2.0,
            "read_by": "replica-1",
            "window_seconds": 10,
            "total_worker_seconds": 500.0,
            "other_worker_seconds": 0.0,
            "other_workspaces": 0,
            "capped_share": 0.72,
        },
        "workspaces": [
            {
                "workspace": "noisy",
                "worker_seconds": 360.0,
                "share": 0.72,
                "capped": True,
                "would_cap": True,
                "capped_since": int((NOW - 42.5) * 1000),
            },
            {
                "workspace": "quiet",
                "worker_seconds": 140.0,
                "share": 0.28,
                "capped": False,
                "would_cap": False,
                "capped_since": None,
            },
        ],
        "last_refresh": {
            "outcome": "won",
            "success": True,
            "last_success": int(NOW * 1000),
            "problem": None,
            "reason": None,
        },
    }


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (Snapshot(), FairnessState.OFF),
        (Snapshot((CollectorStatus("fairness"),)), FairnessState.FAILED),
        (snapshot(fairness(settings=FairnessSettings(enabled=False))), FairnessState.DISABLED),
        (snapshot(fairness(payload_age_seconds=61.0)), FairnessState.STALE),
        (snapshot(fairness()), FairnessState.CAPPING),
        (snapshot(fairness(in_force=Payload((), 6500))), FairnessState.FAIR),
        (snapshot(fairness((WorkspaceUsage("a", 1, ServiceTimes()),), in_force=Payload())), FairnessState.IDLE),
        (snapshot(fairness(), up=False), FairnessState.FAILED),
    ],
)
def test_the_state_is_one_word(state: Snapshot, expected: FairnessState) -> None:
    assert explain(state, MONOTONIC).state is expected


def test_what_was_not_read_yet_is_null_and_nothing_is_invented() -> None:
    answer = explain(Snapshot((CollectorStatus("fairness", problem="no table", reason="missing_table"),)), MONOTONIC)
    assert (answer.mode, answer.decision, answer.usage, answer.admission_ppm) == (None, None, None, None)
    assert (answer.settings, answer.workspaces, answer.capped) == ({}, (), ())
    assert answer.last_refresh is not None
    assert (answer.last_refresh.problem, answer.last_refresh.reason) == ("no table", "missing_table")
    assert (answer.last_refresh.outcome, answer.last_refresh.last_success) == (None, None)


def test_off_has_no_refresh() -> None:
    answer = explain(Snapshot(), MONOTONIC)
    assert (answer.mode, answer.last_refresh) == (FairnessMode.OFF, None)


def test_who_refreshed_is_us_another_replica_or_another_writer() -> None:
    part = fairness()
    for by, replica, ours in (("replica-1", "replica-1", True), ("replica-1", "b", False), (None, "b", False)):
        state = replace(snapshot(replace(part, refreshed_by=by)), replica=replica)
        answer = explain(state, MONOTONIC)
        assert (answer.refreshed_by, answer.refreshed_by_us) == (by, ours)


def test_a_capped_workspace_without_usage_is_shown_with_nothing() -> None:
    answer = explain(snapshot(fairness(in_force=Payload(("gone", "noisy"), 518))), MONOTONIC)
    assert [each.workspace for each in answer.workspaces] == ["noisy", "quiet", "gone"]
    gone = answer.workspaces[-1]
    assert (gone.worker_seconds, gone.share, gone.capped, gone.would_cap) == (0, 0, True, False)


def test_an_idle_cluster_has_shares_of_nothing() -> None:
    answer = explain(snapshot(fairness((), in_force=Payload())), MONOTONIC)
    assert answer.usage is not None
    assert (answer.usage.total_worker_seconds, answer.usage.capped_share) == (0, 0)


def test_a_reading_of_another_replica_is_as_old_as_the_database_says() -> None:
    answer = explain(snapshot(fairness(read_at=NOW - 7)), MONOTONIC + 3)
    assert answer.usage is not None
    assert answer.usage.age_seconds == 10


@given(
    st.lists(st.tuples(st.text(max_size=30), st.integers(0, 10**12)), max_size=30, unique_by=lambda each: each[0]),
    st.integers(0, 3),
)
def test_shares_are_parts_of_one_and_any_name_survives(usage: list[tuple[str, int]], capped: int) -> None:
    in_force = Payload(tuple(name for name, _ in usage[:capped]), 5000)
    read = [WorkspaceUsage(name, micros, ServiceTimes()) for name, micros in usage]
    answer = explain(snapshot(fairness(read, in_force=in_force)), MONOTONIC)
    decoded = json.loads(msgspec.json.encode(answer))
    assert [each["workspace"] for each in decoded["workspaces"]] == [name for name, _ in usage]
    assert sum(each["share"] for each in decoded["workspaces"]) <= 1.000001
    assert {each["workspace"] for each in decoded["workspaces"] if each["capped"]} == set(in_force.overloaded)


async def test_it_is_served_as_json(client: ClientSession, service: Service) -> None:
    service.board.current = snapshot(fairness())
    for path in ("/api/fairness", "/api//fairness/"):
        async with client.get(path) as response:
            assert (response.status, response.content_type) == (200, "application/json")
            assert (await response.json())["state"] == "capping"
