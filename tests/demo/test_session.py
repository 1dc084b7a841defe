"""A session is the whole product on a flooded cluster: it caps the noisy tenant, and its failures have reasons."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from dataclasses import replace

import asyncpg
import pytest

from exporter.demo.load import NOISY, Load
from exporter.demo.measures import Waits, measure_waits
from exporter.demo.postgres import EmbeddedPostgres
from exporter.demo.session import Rule, create_database, decision_in_force, session
from exporter.errors import ConfigError, DemoError
from exporter.fairness.values import FairnessMode, FairnessSettings, FairnessSnapshot, Payload
from exporter.snapshot import Board, Snapshot

COMPARED = Load(workers=30, quiet_tenants=10, backlog_seconds=30)
SMALL = Load(workers=5, quiet_tenants=1, backlog_seconds=10)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A server of this module's own, for its databases go with it."""
    with EmbeddedPostgres() as server:
        yield server


@pytest.fixture
def doomed() -> Iterator[EmbeddedPostgres]:
    """A server for one test, which kills it."""
    with EmbeddedPostgres() as server:
        yield server


def board(payload: Payload, age_seconds: float | None = 3.0, observed_monotonic: float = 100.0) -> Board:
    snapshot = FairnessSnapshot(
        mode=FairnessMode.ENFORCE,
        settings=FairnessSettings(enabled=True, max_percent=60),
        now=0.0,
        observed_monotonic=observed_monotonic,
        in_force=payload,
        in_force_since={},
        payload_at=0.0,
        payload_age_seconds=age_seconds,
        reading=None,
        would=None,
        refreshed_by="demo",
    )
    return Board(replace(Snapshot(), fairness=snapshot))


class TestTheDecisionOfTheWorkers:
    def test_it_is_the_stored_one_and_ages(self) -> None:
        payload = Payload((NOISY,), 351)
        decision = decision_in_force(board(payload), Rule.WEIGHTED, 107.5)
        assert (decision.payload, decision.age_seconds) == (payload, 10.5)

    def test_the_constant_rule_replaces_the_probability_by_the_target(self) -> None:
        decision = decision_in_force(board(Payload((NOISY,), 351)), Rule.CONSTANT, 100.0)
        assert decision.payload == Payload((NOISY,), 6500)

    def test_without_a_snapshot_there_is_none(self) -> None:
        decision = decision_in_force(Board(Snapshot()), Rule.WEIGHTED, 100.0)
        assert (decision.payload, decision.age_seconds) == (Payload(), None)

    def test_a_decision_that_was_never_made_has_no_age(self) -> None:
        assert decision_in_force(board(Payload(), None), Rule.WEIGHTED, 100.0).age_seconds is None


async def test_a_new_database_has_windmills_tables_and_the_setting(server: EmbeddedPostgres) -> None:
    for name, enabled in (("it's on", True), ("it's off", False)):
        url = await create_database(server, name.replace(" ", "_").replace("'", ""), fairness_enabled=enabled)
        connection = await asyncpg.connect(url)
        value = await connection.fetchval(
            "SELECT value::text FROM global_settings WHERE name = 'workspace_fairness_enabled'"
        )
        assert value == ("true" if enabled else "false")
        assert await connection.fetchval("SELECT count(*) FROM v2_job_queue") == 0
        await connection.close()


async def quiet_waits(server: EmbeddedPostgres, rule: Rule) -> Waits:
    async with session(server, f"waits_{rule.name.lower()}", rule, COMPARED, 1) as running:
        cluster = running.cluster
        await asyncio.sleep(30 - cluster.now)
        return measure_waits(cluster.runs_since(0), cluster.waiting, COMPARED.quiet_workspaces, 12, 30)


async def test_quiet_tenants_wait_far_less_with_the_weighted_rule(server: EmbeddedPostgres) -> None:
    """At least five times less than with fairness off, three times less than with the constant probability (p95)."""
    off, constant, weighted = await asyncio.gather(*(quiet_waits(server, rule) for rule in Rule))
    assert off.p95_seconds is not None
    assert constant.p95_seconds is not None
    assert weighted.p95_seconds is not None
    assert off.p95_seconds > 5 * weighted.p95_seconds
    assert constant.p95_seconds > 3 * weighted.p95_seconds


async def test_a_taken_port_is_reported_as_itself(server: EmbeddedPostgres) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="listen"):
            async with session(server, "taken_port", Rule.WEIGHTED, SMALL, 1, taken.getsockname()[1]):
                pass


async def test_an_error_of_the_body_comes_out_as_itself(server: EmbeddedPostgres) -> None:
    with pytest.raises(LookupError):
        async with session(server, "body_fails", Rule.WEIGHTED, SMALL, 1):
            raise LookupError


async def kill_during_a_session(server: EmbeddedPostgres) -> None:
    """Sleeps far longer than the test may take: the failure of the session ends it."""
    async with session(server, "dies", Rule.WEIGHTED, SMALL, 1):
        await asyncio.to_thread(server.stop, signal.SIGQUIT)
        await asyncio.sleep(60)


async def test_a_server_that_dies_ends_the_session_with_the_reason(doomed: EmbeddedPostgres) -> None:
    with pytest.raises(DemoError, match="lost its database"):
        await kill_during_a_session(doomed)
