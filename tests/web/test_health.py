"""Liveness and readiness."""

from __future__ import annotations

from dataclasses import replace

import pytest
from aiohttp import ClientSession

from exporter.snapshot import CollectorStatus, Snapshot
from exporter.web.health import not_ready_reason
from tests.metrics.scenes import full_snapshot, snapshot
from tests.web.serving import Service


async def test_healthy_is_200_whatever_the_database_does(client: ClientSession, service: Service) -> None:
    service.board.current = snapshot(up=False)
    service.reason = "The exporter is shutting down."
    async with client.get("/-/healthy") as response:
        assert (response.status, await response.json()) == (200, {"status": "ok"})


async def test_ready_is_200_while_nothing_speaks_against_it(client: ClientSession) -> None:
    async with client.get("/-/ready") as response:
        assert (response.status, await response.json()) == (200, {"status": "ready"})


async def test_not_ready_is_503_with_the_reason(client: ClientSession, service: Service) -> None:
    service.reason = "The exporter is shutting down."
    async with client.get("/-/ready") as response:
        assert response.status == 503
        assert await response.json() == {
            "message": "The exporter is shutting down.",
            "error": {"code": "not_ready", "message": "The exporter is shutting down."},
        }


@pytest.mark.parametrize("path", ["/-/healthy", "/-/ready"])
async def test_probes_may_use_head(client: ClientSession, path: str) -> None:
    async with client.head(path) as response:
        assert response.status == 200


def reason(state: Snapshot, *, requires_database: bool = True, stopping: bool = False) -> str | None:
    return not_ready_reason(state, requires_database=requires_database, stopping=stopping)


def test_a_sidecar_is_ready_without_a_database() -> None:
    assert reason(snapshot(up=False), requires_database=False) is None


def test_shutting_down_is_not_ready_for_anybody() -> None:
    assert reason(full_snapshot(), requires_database=False, stopping=True) == "The exporter is shutting down."


def test_where_the_database_is_required_it_must_be_reached_and_read() -> None:
    assert reason(snapshot(up=False)) == "The database cannot be reached."
    unread = (CollectorStatus("fairness"), CollectorStatus("queue"))
    assert reason(Snapshot(unread, database_up=True)) == "Nothing was read from the database yet."
    assert reason(full_snapshot()) is None
    assert reason(replace(full_snapshot(), database_up=False)) == "The database cannot be reached."


def test_one_broken_collector_does_not_make_the_replica_unready() -> None:
    """A missing table is reported by name and stays; taking the replica away would hide the other half too."""
    statuses = (CollectorStatus("fairness"), CollectorStatus("queue", success=True, last_success_epoch=1.0))
    assert reason(Snapshot(statuses, database_up=True)) is None


def test_with_both_modes_off_no_database_is_required() -> None:
    assert reason(Snapshot()) is None
