"""State rows that nobody of ours wrote: however large or absurd, they cost little and block nothing."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from exporter.conditions import Conditions
from exporter.config import DatabaseConfig
from exporter.database.connect import Connector
from exporter.database.database import Connection, Database
from exporter.database.target import Host
from exporter.fairness.gate import Cadence
from exporter.fairness.look import Looker
from exporter.fairness.payload import MAX_READ_WORKSPACES, PAYLOAD_ROW
from exporter.fairness.reading import READING_ROW
from exporter.fairness.refresh import Refresher
from exporter.fairness.values import RefreshResult
from tests.database.proxy import Mode, TcpProxy
from tests.database.targets import target_at
from tests.fairness.replicas import (
    ENFORCE,
    SHADOW,
    MakeReplica,
    audit_rows,
    enable,
    make_noisy,
    next_tick,
    nothing_more,
    stored_payload,
)

# Two megabytes of text that PostgreSQL stores in a few kilobytes.
BOMB = json.dumps({"overloaded": ["a" * 2_000_000], "admission_ppm": 1})


async def put(windmill: Connection, row: str, value: str, *, age: str = "1 hour") -> None:
    await windmill.execute(
        "INSERT INTO background_task_state (name, value, updated_at) "
        "VALUES ($1, $2::text::jsonb, now() - $3::text::interval)",
        row,
        value,
        age,
    )


async def owed_rows(windmill: Connection) -> list[object]:
    text = await windmill.fetchval("SELECT value ->> 'owed' FROM background_task_state WHERE name = $1", READING_ROW)
    return list(json.loads(text))


async def test_a_value_that_unfolds_to_megabytes_is_never_read(database: Database, windmill: Connection) -> None:
    for row in (PAYLOAD_ROW, READING_ROW):
        await put(windmill, row, BOMB)
    stored_bytes = await windmill.fetchval("SELECT max(pg_column_size(value)) FROM background_task_state")
    assert stored_bytes < 100_000
    look = await Looker(database, ENFORCE).look()
    assert look.payload_text is None
    assert (look.payload_missing, look.reading_missing) == (False, False)
    assert look.stored.reading is None


async def test_a_winner_replaces_a_value_that_is_too_long_to_be_read(
    windmill: Connection, replica: MakeReplica
) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    for row in (PAYLOAD_ROW, READING_ROW):
        await put(windmill, row, BOMB)
    outcome = await replica().tick()
    assert outcome.result is RefreshResult.WON
    assert outcome.payload_errors == 1
    assert (await stored_payload(windmill))["overloaded"] == ["noisy"]
    assert await audit_rows(windmill) == [("capped", "noisy")]


async def test_what_cannot_be_read_is_counted_once_and_not_every_cycle(
    windmill: Connection, replica: MakeReplica
) -> None:
    await put(windmill, PAYLOAD_ROW, '"text"')
    shadow = replica(SHADOW)
    assert [(await next_tick(shadow)).payload_errors for _ in range(3)] == [1, 0, 0]
    await windmill.execute("UPDATE background_task_state SET value = '[]'")
    assert [(await next_tick(shadow)).payload_errors for _ in range(2)] == [1, 0]


async def test_a_list_without_end_has_an_end_in_the_audit_log(windmill: Connection, replica: MakeReplica) -> None:
    await enable(windmill)
    names = [f"workspace-{number}" for number in range(MAX_READ_WORKSPACES + 500)]
    await put(windmill, PAYLOAD_ROW, json.dumps({"overloaded": names, "admission_ppm": 1}))
    outcome = await replica().tick()
    assert outcome.payload_errors == 1
    assert await audit_rows(windmill) == [("uncapped", name) for name in names[:MAX_READ_WORKSPACES]]


async def test_a_name_that_no_column_holds_is_cut_and_never_owed(windmill: Connection, replica: MakeReplica) -> None:
    """One row that always fails would keep every later transition out of the audit log."""
    await enable(windmill)
    await make_noisy(windmill)
    await put(windmill, PAYLOAD_ROW, json.dumps({"overloaded": ["é" * 5000], "admission_ppm": 1}))
    assert (await replica().tick()).audit_failures == 0
    assert await audit_rows(windmill) == [("capped", "noisy"), ("uncapped", "é" * 255)]
    assert await owed_rows(windmill) == []


@pytest.mark.parametrize("at", [-1e300, -1.0, 1e15, 1e300])
async def test_a_row_owed_at_an_impossible_time_is_written_at_the_present(
    windmill: Connection, replica: MakeReplica, at: float
) -> None:
    await enable(windmill)
    owed = {"operation": "workspace_fairness.uncapped", "workspace": "old", "at": at, "parameters": None}
    await put(windmill, READING_ROW, json.dumps({"version": 1, "owed": [owed]}))
    assert (await replica().tick()).audit_failures == 0
    assert await windmill.fetchval("SELECT now() - \"timestamp\" < interval '1 minute' FROM audit_partitioned")
    assert await owed_rows(windmill) == []


async def test_a_row_of_another_operation_is_not_ours_to_write(windmill: Connection, replica: MakeReplica) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    owed = {"operation": "users.delete" * 20, "workspace": "old", "at": 1.0, "parameters": None}
    await put(windmill, READING_ROW, json.dumps({"version": 1, "owed": [owed]}))
    assert (await replica().tick()).audit_failures == 0
    assert await audit_rows(windmill) == [("capped", "noisy")]
    assert await owed_rows(windmill) == []


async def test_a_reading_from_the_future_is_not_believed(windmill: Connection, replica: MakeReplica) -> None:
    """It would stay the newest until that time comes."""
    await make_noisy(windmill)
    await replica().tick()
    await windmill.execute(
        "UPDATE background_task_state SET value = jsonb_set(value, '{at}', to_jsonb((value ->> 'at')::numeric + 3600)) "
        f"WHERE name = '{READING_ROW}'"
    )
    snapshot = (await replica(SHADOW, name="shadow").tick()).snapshot
    assert snapshot is not None
    assert snapshot.reading is not None
    assert snapshot.reading.by == "shadow"


async def test_a_silent_first_host_does_not_hold_a_lone_refresh_up_for_ever(
    windmill: Connection, windmill_url: str
) -> None:
    """Field case F14: connecting takes longer than a refresh may, and still comes to its second host."""
    await enable(windmill)
    await make_noisy(windmill)
    here = target_at(windmill_url)
    config = DatabaseConfig(connect_timeout_seconds=1)
    async with TcpProxy(here.hosts[0].port) as silent:
        await silent.set_mode(Mode.HOLD)
        hosts = (Host("127.0.0.1", silent.port), *here.hosts)
        database = Database(Connector(lambda: replace(here, hosts=hosts), config), config)
        refresher = Refresher(
            database,
            ENFORCE,
            replica="alone",
            conditions=Conditions(),
            require=nothing_more,
            require_audit=nothing_more,
            monotonic=asyncio.get_running_loop().time,
            cadence=Cadence(refresh_limit=config.connect_timeout_seconds),
        )
        try:
            assert (await refresher.tick()).result is RefreshResult.WON
        finally:
            database.close()
