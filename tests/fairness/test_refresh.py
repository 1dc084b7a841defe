"""The refresh cycle on real PostgreSQL: one winner, one audit row a transition, whoever dies when."""

from __future__ import annotations

import asyncio
import json

import pytest

from exporter.config import FairnessConfig, FairnessPins
from exporter.database import state_rows
from exporter.database.database import Connection, Database
from exporter.demo.postgres import EmbeddedPostgres
from exporter.errors import DatabaseError
from exporter.fairness import store
from exporter.fairness.gate import Cadence
from exporter.fairness.payload import DRAINED, PAYLOAD_ROW
from exporter.fairness.values import FairnessMode, Payload, RefreshResult
from tests.fairness.replicas import (
    ENABLED,
    SHADOW,
    MakeReplica,
    audit_rows,
    enable,
    make_noisy,
    next_tick,
    stored_payload,
)
from tests.fairness.scene import add_completed


async def test_the_winner_stores_decision_audit_rows_and_reading(windmill: Connection, replica: MakeReplica) -> None:
    await enable(windmill, max_percent=60)
    await make_noisy(windmill)
    outcome = await replica(name="r1").tick()
    assert outcome.result is RefreshResult.WON
    assert outcome.capped == ("noisy",)
    assert await stored_payload(windmill) == {"overloaded": ["noisy"], "admission_ppm": 518}
    row = await windmill.fetchrow("SELECT *, action_kind::text AS action FROM audit_partitioned")
    assert row is not None
    assert (row["workspace_id"], row["username"], row["email"]) == ("admins", "system", "system@windmill.dev")
    assert (row["operation"], row["resource"], row["action"]) == ("workspace_fairness.capped", "noisy", "update")
    assert json.loads(row["parameters"]) == {"max_percent": "60", "window_secs": "10", "total_overloaded": "1"}
    snapshot = outcome.snapshot
    assert snapshot is not None
    assert snapshot.in_force == Payload(("noisy",), 518)
    assert snapshot.in_force_since["noisy"] == pytest.approx(row["timestamp"].timestamp(), abs=1)
    assert snapshot.refreshed_by == "r1"


async def test_everybody_reads_the_same_numbers(windmill: Connection, replica: MakeReplica) -> None:
    """Field case F83."""
    await enable(windmill)
    await make_noisy(windmill)
    won = await replica().tick()
    lost = await replica().tick()
    assert lost.result is RefreshResult.LOST
    assert won.snapshot is not None
    assert lost.snapshot is not None
    assert lost.snapshot.reading == won.snapshot.reading
    assert lost.snapshot.in_force == won.snapshot.in_force
    assert lost.snapshot.would == won.snapshot.would


async def test_eight_replicas_have_one_winner_a_cycle_and_one_audit_row_a_transition(
    windmill: Connection, replica: MakeReplica
) -> None:
    await enable(windmill)
    # Longer than eight ticks take on a busy machine: a late one must not find the row due again.
    cadence = Cadence(capped=1.0, idle=1.0, claim_guard=1.0, reading=60.0, slack=0.005)
    replicas = [replica(cadence=cadence) for _ in range(8)]
    winners: list[int] = []
    for cycle in range(6):
        if cycle % 2 == 0:
            await make_noisy(windmill)
        else:
            await windmill.execute("DELETE FROM v2_job_completed")
            await windmill.execute("DELETE FROM v2_job_queue")
        await asyncio.sleep(1.1)
        outcomes = await asyncio.gather(*(one.tick() for one in replicas))
        winners.append([outcome.result for outcome in outcomes].count(RefreshResult.WON))
    assert winners == [1] * 6
    assert await audit_rows(windmill) == [("capped", "noisy"), ("uncapped", "noisy")] * 3


async def test_a_single_replica_never_loses_a_cycle_to_nobody(windmill: Connection, replica: MakeReplica) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    alone = replica()
    assert [(await next_tick(alone)).result for _ in range(12)] == [RefreshResult.WON] * 12


async def test_a_losing_replica_runs_one_select_and_takes_no_transaction_id(
    windmill: Connection, windmill_url: str, replica: MakeReplica, postgres: EmbeddedPostgres
) -> None:
    await enable(windmill)
    await replica().tick()
    name = windmill_url.rpartition("/")[2].partition("?")[0]
    await windmill.execute(f"ALTER DATABASE {name} SET log_statement = 'all'")
    loser = replica(cadence=Cadence(capped=60, idle=60, claim_guard=60, reading=60))
    before = await windmill.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())")
    logged = len(postgres.read_log())
    outcome = await loser.tick()
    assert outcome.result is RefreshResult.LOST
    assert await windmill.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())") == before
    lines = [line for line in postgres.read_log()[logged:].splitlines() if "LOG:" in line]
    assert [line.split("LOG:")[1].split()[0] for line in lines] == ["statement:", "execute", "statement:"]
    assert "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED READ ONLY" in lines[0]
    assert "COMMIT" in lines[2]


async def test_a_winner_that_dies_after_its_claim_delays_the_fleet_by_one_cycle_only(
    windmill: Connection, replica: MakeReplica, database: Database
) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    dead = await state_rows.claim(database, "dead", PAYLOAD_ROW, min_age_seconds=0.1, initial="{}", missing=True)
    assert dead is not None
    survivor = replica()
    assert (await survivor.tick()).result is not RefreshResult.WON
    assert (await next_tick(survivor)).result is RefreshResult.WON
    assert await audit_rows(windmill) == [("capped", "noisy")]


async def test_a_slow_winner_cannot_overwrite_a_later_cycle(
    windmill: Connection, replica: MakeReplica, database: Database
) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    fence = await state_rows.claim(
        database, "slow", PAYLOAD_ROW, min_age_seconds=0.1, initial='{"overloaded":[],"admission_ppm":1}', missing=True
    )
    assert fence is not None
    slow = await store.aggregate(database, ENABLED, "slow")
    await asyncio.sleep(0.25)
    assert (await replica().tick()).result is RefreshResult.WON
    written = await store.write_decision(database, fence, Payload(("quiet",), 1), slow, ENABLED)
    assert written is None
    assert (await stored_payload(windmill))["overloaded"] == ["noisy"]
    assert await audit_rows(windmill) == [("capped", "noisy")]


async def test_the_previous_set_is_the_stored_one_and_not_a_memory(windmill: Connection, replica: MakeReplica) -> None:
    """Field case F54: restarts of the winner add no rows."""
    await enable(windmill)
    await make_noisy(windmill)
    for _ in range(5):
        await replica().tick()
        await asyncio.sleep(0.12)
    assert await audit_rows(windmill) == [("capped", "noisy")]


async def test_an_unreadable_previous_set_counts_as_empty(windmill: Connection, replica: MakeReplica) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    await windmill.execute(
        "INSERT INTO background_task_state (name, value, updated_at) VALUES ('workspace_fairness', '[1]', 'epoch')"
    )
    outcome = await replica().tick()
    assert outcome.capped == ("noisy",)
    assert outcome.payload_errors == 1


async def test_an_idle_cluster_empties_the_list_with_one_audit_row(windmill: Connection, replica: MakeReplica) -> None:
    """Field case F56."""
    await enable(windmill)
    await make_noisy(windmill)
    alone = replica()
    await alone.tick()
    await windmill.execute("DELETE FROM v2_job_completed")
    await windmill.execute("DELETE FROM v2_job_queue")
    await next_tick(alone)
    await next_tick(alone)
    assert await stored_payload(windmill) == {"overloaded": [], "admission_ppm": 5500}
    assert await audit_rows(windmill) == [("capped", "noisy"), ("uncapped", "noisy")]


async def test_an_update_in_the_future_counts_as_stale_with_one_warning(
    windmill: Connection, replica: MakeReplica, caplog: pytest.LogCaptureFixture
) -> None:
    await enable(windmill)
    await windmill.execute(
        "INSERT INTO background_task_state (name, value, updated_at) "
        "VALUES ('workspace_fairness', '{\"overloaded\": []}', now() + interval '1 year')"
    )
    assert (await replica().tick()).result is RefreshResult.WON
    assert [record.message for record in caplog.records].count(
        "background_task_state: workspace_fairness was updated in the future; it counts as stale"
    ) == 1


@pytest.mark.parametrize("stamp", ["infinity", "-infinity"])
async def test_an_update_at_infinity_is_survived(windmill: Connection, replica: MakeReplica, stamp: str) -> None:
    await enable(windmill)
    await windmill.execute(
        "INSERT INTO background_task_state (name, value, updated_at) "
        "VALUES ('workspace_fairness', '{\"overloaded\": []}', $1::text::timestamptz)",
        stamp,
    )
    assert (await replica().tick()).result is RefreshResult.WON


async def test_switching_fairness_off_drains_the_cap_once(windmill: Connection, replica: MakeReplica) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    replicas = [replica() for _ in range(3)]
    await replicas[0].tick()
    await enable(windmill, enabled=False)
    for _ in range(3):
        await asyncio.sleep(0.25)
        outcomes = await asyncio.gather(*(one.tick() for one in replicas))
    for outcome in outcomes:
        assert outcome.snapshot is not None
        assert outcome.snapshot.in_force == DRAINED
    assert await stored_payload(windmill) == {"overloaded": [], "admission_ppm": 10_000}
    assert await audit_rows(windmill) == [("capped", "noisy"), ("uncapped", "noisy")]
    assert {outcome.result for outcome in outcomes} <= {RefreshResult.LOST, RefreshResult.OBSERVED}


async def test_while_fairness_is_off_what_is_stored_holds_nobody_back(
    windmill: Connection, replica: MakeReplica
) -> None:
    """At once, before anybody drains it; and beside a Windmill that leaves it stored for ever."""
    await enable(windmill)
    await make_noisy(windmill)
    await replica().tick()
    await enable(windmill, enabled=False)
    snapshot = (await replica(SHADOW).tick()).snapshot
    assert (await stored_payload(windmill))["overloaded"] == ["noisy"]
    assert snapshot is not None
    assert snapshot.in_force == DRAINED


async def test_a_pin_in_the_file_enables_where_windmill_refuses(windmill: Connection, replica: MakeReplica) -> None:
    await make_noisy(windmill)
    pins = FairnessPins(enabled=True, max_percent=50, duration_secs=10, min_total_jobs=4)
    await windmill.execute("DROP TABLE global_settings")
    outcome = await replica(FairnessConfig(mode=FairnessMode.ENFORCE, settings=pins)).tick()
    assert outcome.capped == ("noisy",)


async def test_shadow_says_what_it_would_do_and_writes_nothing(windmill: Connection, replica: MakeReplica) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    outcome = await replica(SHADOW).tick()
    assert outcome.result is RefreshResult.OBSERVED
    assert outcome.snapshot is not None
    assert outcome.snapshot.in_force == DRAINED
    assert outcome.snapshot.would is not None
    assert outcome.snapshot.would.payload.overloaded == ("noisy",)
    assert await windmill.fetchval("SELECT count(*) FROM background_task_state") == 0
    assert await audit_rows(windmill) == []


async def test_shadow_beside_another_writer_never_mixes_the_two(windmill: Connection, replica: MakeReplica) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    await windmill.execute(
        "INSERT INTO background_task_state (name, value) "
        'VALUES (\'workspace_fairness\', \'{"overloaded": ["other"], "admission_ppm": 77}\')'
    )
    await windmill.execute(
        "INSERT INTO audit_partitioned (workspace_id, username, operation, action_kind, resource) "
        "VALUES ('admins', 'system', 'workspace_fairness.capped', 'update', 'other')"
    )
    snapshot = (await replica(SHADOW).tick()).snapshot
    assert snapshot is not None
    assert snapshot.would is not None
    assert snapshot.in_force == Payload(("other",), 77)
    assert snapshot.would.payload.overloaded == ("noisy",)
    assert snapshot.refreshed_by is None
    since = await windmill.fetchval("SELECT date_part('epoch', \"timestamp\") FROM audit_partitioned")
    assert snapshot.in_force_since == {"other": since}


async def test_where_windmill_wins_the_cycles_the_fleet_shares_a_reading_of_its_own(
    windmill: Connection, replica: MakeReplica
) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    await windmill.execute(
        "INSERT INTO background_task_state (name, value, updated_at) "
        'VALUES (\'workspace_fairness\', \'{"overloaded": ["noisy"], "admission_ppm": 77}\', '
        "clock_timestamp() + interval '-0.01 second')"
    )
    slow = Cadence(capped=60, idle=60, claim_guard=60, reading=0.5, slack=0.0)
    outcomes = await asyncio.gather(*(replica(cadence=slow).tick() for _ in range(4)))
    results = [outcome.result for outcome in outcomes]
    assert results.count(RefreshResult.OBSERVED) == 1
    assert (await stored_payload(windmill))["admission_ppm"] == 77
    late = (await replica(cadence=slow).tick()).snapshot
    assert late is not None
    assert late.reading is not None
    assert late.in_force.admission_ppm == 77
    assert late.refreshed_by is None


async def test_a_cycle_that_takes_too_long_is_ended_and_cools_down(windmill: Connection, replica: MakeReplica) -> None:
    """Field case F22: locks held by DDL end the refresh within its limit, and the next one waits its interval."""
    await enable(windmill)
    slow = replica(cadence=Cadence(capped=0.5, idle=0.5, refresh_limit=0.4))
    transaction = windmill.transaction()
    await transaction.start()
    await windmill.execute("LOCK TABLE v2_job_completed IN ACCESS EXCLUSIVE MODE")
    begun = asyncio.get_running_loop().time()
    with pytest.raises(DatabaseError) as caught:
        await slow.tick()
    assert caught.value.reason == "deadline"
    assert asyncio.get_running_loop().time() - begun < 5
    await transaction.rollback()
    assert (await slow.tick()).result is RefreshResult.SKIPPED
    assert (await next_tick(slow)).result in {RefreshResult.WON, RefreshResult.LOST}


async def test_the_oscillating_share_alternates_audit_rows(windmill: Connection, replica: MakeReplica) -> None:
    """Field case F54, with the share on either side of the cap."""
    await enable(windmill)
    for share in (51, 49, 51, 49):
        await windmill.execute("DELETE FROM v2_job_completed")
        await add_completed(windmill, "a", duration_ms=share * 100)
        await add_completed(windmill, "b", duration_ms=3000)
        await add_completed(windmill, "c", duration_ms=(70 - share) * 100)
        await replica().tick()
        await asyncio.sleep(0.25)
    assert await audit_rows(windmill) == [("capped", "a"), ("uncapped", "a")] * 2
