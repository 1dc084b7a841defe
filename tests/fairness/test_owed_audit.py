"""Audit rows that cannot be written: owed, written late, exactly once, and never in the way of the payload."""

from __future__ import annotations

import asyncio
import json

import pytest

from exporter.database.database import Connection
from exporter.fairness.gate import Cadence
from exporter.fairness.values import RefreshResult
from tests.fairness.replicas import MakeReplica, audit_rows, enable, make_noisy, stored_payload


async def test_what_is_owed_and_known_survives_the_cycles_that_windmill_wins(
    windmill: Connection, replica: MakeReplica
) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    await windmill.execute("ALTER TABLE audit_partitioned RENAME TO audit_hidden")
    first = (await replica().tick()).snapshot
    assert first is not None
    await windmill.execute("UPDATE background_task_state SET updated_at = 'epoch' WHERE name LIKE 'windmill_exporter%'")
    await asyncio.sleep(0.55)
    await windmill.execute("UPDATE background_task_state SET updated_at = now() WHERE name = 'workspace_fairness'")
    beside = Cadence(capped=60, idle=60, claim_guard=60, reading=0.5, slack=0.0)
    outcome = await replica(cadence=beside).tick()
    assert outcome.result is RefreshResult.OBSERVED
    assert outcome.snapshot is not None
    assert outcome.snapshot.in_force_since == first.in_force_since
    await windmill.execute("ALTER TABLE audit_hidden RENAME TO audit_partitioned")
    await asyncio.sleep(0.25)
    last = (await replica().tick()).snapshot
    assert last is not None
    assert last.in_force_since == first.in_force_since
    assert await audit_rows(windmill) == [("capped", "noisy")]


async def test_an_audit_row_that_cannot_be_written_is_owed_and_written_late_exactly_once(
    windmill: Connection, replica: MakeReplica
) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    await windmill.execute("ALTER TABLE audit_partitioned RENAME TO audit_hidden")
    first = await replica().tick()
    assert first.result is RefreshResult.WON
    assert first.audit_failures == 1
    assert (await stored_payload(windmill))["overloaded"] == ["noisy"]
    await asyncio.sleep(0.25)
    assert (await replica().tick()).audit_failures == 1
    await windmill.execute("ALTER TABLE audit_hidden RENAME TO audit_partitioned")
    assert await audit_rows(windmill) == []
    for _ in range(2):
        await asyncio.sleep(0.25)
        assert (await replica().tick()).audit_failures == 0
    assert await audit_rows(windmill) == [("capped", "noisy")]


async def test_a_late_row_keeps_the_time_of_its_transition(windmill: Connection, replica: MakeReplica) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    await windmill.execute("ALTER TABLE audit_partitioned RENAME TO audit_hidden")
    first = await replica().tick()
    await windmill.execute("ALTER TABLE audit_hidden RENAME TO audit_partitioned")
    await asyncio.sleep(0.5)
    await replica().tick()
    assert first.snapshot is not None
    at = await windmill.fetchval("SELECT date_part('epoch', \"timestamp\") FROM audit_partitioned")
    assert at == pytest.approx(first.snapshot.in_force_since["noisy"], abs=1e-5)


async def test_a_missing_partition_never_stops_the_payload(windmill: Connection, replica: MakeReplica) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    partitions = await windmill.fetch(
        "SELECT inhrelid::regclass::text AS name FROM pg_inherits "
        "JOIN pg_class p ON p.oid = inhparent WHERE p.relname = 'audit_partitioned'"
    )
    for partition in partitions:
        await windmill.execute(f"DROP TABLE {partition['name']}")
    first = await replica().tick()
    assert first.audit_failures == 1
    assert (await stored_payload(windmill))["overloaded"] == ["noisy"]
    await windmill.execute("SELECT make_audit_partitions_for_tests()")
    await asyncio.sleep(0.25)
    await replica().tick()
    assert await audit_rows(windmill) == [("capped", "noisy")]


async def test_a_late_row_of_a_day_without_a_partition_is_written_at_the_present(
    windmill: Connection, replica: MakeReplica
) -> None:
    await enable(windmill)
    owed = {"operation": "workspace_fairness.uncapped", "workspace": "old", "at": 1.5e9, "parameters": None}
    await windmill.execute(
        "INSERT INTO background_task_state (name, value) VALUES ('windmill_exporter_fairness', $1::text::jsonb)",
        json.dumps({"version": 1, "owed": [owed]}),
    )
    assert (await replica().tick()).audit_failures == 0
    assert await audit_rows(windmill) == [("uncapped", "old")]


async def test_rows_that_are_owed_are_written_after_fairness_was_switched_off(
    windmill: Connection, replica: MakeReplica
) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    await windmill.execute("ALTER TABLE audit_partitioned RENAME TO audit_hidden")
    await replica().tick()
    await enable(windmill, enabled=False)
    await asyncio.sleep(0.25)
    assert (await replica().tick()).audit_failures == 2
    assert await stored_payload(windmill) == {"overloaded": [], "admission_ppm": 10_000}
    await windmill.execute("ALTER TABLE audit_hidden RENAME TO audit_partitioned")
    for _ in range(2):
        await asyncio.sleep(0.25)
        await replica().tick()
    assert await audit_rows(windmill) == [("capped", "noisy"), ("uncapped", "noisy")]
