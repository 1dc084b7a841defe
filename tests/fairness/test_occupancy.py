"""Worker-seconds and service times, as the one aggregation reads them from real tables."""

from __future__ import annotations

import pytest

from exporter.database.database import Connection, Database
from exporter.fairness.store import aggregate
from exporter.fairness.values import FairnessSettings, WorkspaceUsage
from tests.fairness.scene import add_completed, add_running


async def usage(database: Database, window_seconds: int = 10) -> dict[str, WorkspaceUsage]:
    reading = await aggregate(database, FairnessSettings(window_seconds=window_seconds), "test")
    return {one.workspace: one for one in reading.usage}


async def seconds(database: Database, workspace: str) -> float:
    found = (await usage(database)).get(workspace)
    return found.worker_seconds if found else 0.0


async def test_an_empty_cluster_has_a_reading_without_workspaces(database: Database) -> None:
    reading = await aggregate(database, FairnessSettings(), "test")
    assert reading.usage == ()
    assert reading.read_at > 1_700_000_000


async def test_worker_time_counts_jobs_by_their_length_and_not_by_their_number(
    windmill: Connection, database: Database
) -> None:
    """600 jobs of 100 ms are 60 worker-seconds, one long job is the window (field case F43)."""
    await add_completed(windmill, "many", duration_ms=100, count=600)
    await add_running(windmill, "one", started_ago=60)
    found = await usage(database)
    assert found["many"].worker_seconds == 60.0
    assert found["one"].worker_seconds == pytest.approx(10.0, abs=0.5)


@pytest.mark.parametrize(("ping_ago", "expected"), [(5.0, 5.0), (55.0, 0.0), (61.0, 0.0), (110.0, 0.0)])
async def test_a_running_job_earns_until_its_own_last_ping(
    windmill: Connection, database: Database, ping_ago: float, expected: float
) -> None:
    """Field case F48."""
    await add_running(windmill, "w", started_ago=300, ping_ago=ping_ago)
    assert await seconds(database, "w") == pytest.approx(expected, abs=0.5)


@pytest.mark.parametrize("kind", ["flow", "flowpreview", "flownode", "singlestepflow"])
async def test_flow_orchestration_holds_no_worker(windmill: Connection, database: Database, kind: str) -> None:
    await add_running(windmill, "w", kind=kind)
    await add_completed(windmill, "w", duration_ms=5000, kind=kind)
    assert await usage(database) == {}


async def test_the_older_name_of_a_single_step_flow_is_left_out_too(windmill: Connection, database: Database) -> None:
    await windmill.execute("ALTER TYPE job_kind RENAME VALUE 'singlestepflow' TO 'singlescriptflow'")
    await add_running(windmill, "w", kind="singlescriptflow")
    assert await usage(database) == {}


async def test_rows_that_hold_no_worker_are_left_out(windmill: Connection, database: Database) -> None:
    await add_running(windmill, "suspended", suspended=True)
    await add_running(windmill, "no-start", started_ago=None)
    await add_running(windmill, "not-running", running=False)
    await add_running(windmill, "never-pulled", ping_ago=None)
    assert await usage(database) == {}


async def test_a_force_failed_zombie_counts_its_measured_run_time(windmill: Connection, database: Database) -> None:
    await add_completed(windmill, "zombie", duration_ms=2000, completed_ago=1, started_ago=86_400)
    assert await seconds(database, "zombie") == pytest.approx(2.0, abs=0.01)


async def test_a_job_that_ended_in_the_window_counts_only_its_part_of_it(
    windmill: Connection, database: Database
) -> None:
    await add_completed(windmill, "w", duration_ms=60_000, completed_ago=4)
    assert await seconds(database, "w") == pytest.approx(6.0, abs=0.2)


async def test_service_times_are_unclamped_and_leave_out_jobs_that_never_ran(
    windmill: Connection, database: Database
) -> None:
    await add_completed(windmill, "w", duration_ms=34_000, completed_ago=50)
    await add_completed(windmill, "w", duration_ms=0, completed_ago=5)
    await add_completed(windmill, "w", duration_ms=10**11, completed_ago=5)
    await add_completed(windmill, "w", duration_ms=1000, completed_ago=70)
    await add_completed(windmill, "w", duration_ms=1000, completed_ago=-3600)
    found = (await usage(database))["w"]
    assert (found.service.jobs, found.service.seconds) == (1, 34.0)


async def test_absurd_rows_of_an_old_database_neither_fail_nor_count(windmill: Connection, database: Database) -> None:
    """A NULL or infinite start, a huge or negative duration, a completion at infinity (windmill-db, trap 7)."""
    await add_completed(windmill, "huge", duration_ms=2**62, completed_ago=1, started_ago=3)
    await add_completed(windmill, "negative", duration_ms=-(2**62), completed_ago=1, started_ago=3)
    await add_completed(windmill, "no-start", duration_ms=3000, completed_ago=1, has_start=False)
    await add_completed(windmill, "future", duration_ms=1000, completed_ago=-(10**9))
    await add_completed(windmill, "never", duration_ms=1000)
    await windmill.execute("UPDATE v2_job_completed SET completed_at = 'infinity' WHERE workspace_id = 'never'")
    for value in ("infinity", "-infinity"):
        await add_running(windmill, f"start {value}")
        await windmill.execute(
            "UPDATE v2_job_queue SET started_at = $1::text::timestamptz WHERE workspace_id = $2",
            value,
            f"start {value}",
        )
    found = {name: round(one.worker_seconds) for name, one in (await usage(database)).items()}
    assert found == {"huge": 2, "negative": 0, "no-start": 3, "future": 0, "start infinity": 0, "start -infinity": 10}


async def test_both_halves_are_added_per_workspace(windmill: Connection, database: Database) -> None:
    await add_completed(windmill, "w", duration_ms=3000)
    await add_running(windmill, "w", started_ago=4)
    assert await seconds(database, "w") == pytest.approx(7.0, abs=0.5)


async def test_equal_tenants_tie_to_the_microsecond(windmill: Connection, database: Database) -> None:
    await add_completed(windmill, "a", duration_ms=333, count=30)
    await add_completed(windmill, "b", duration_ms=333, count=30)
    found = await usage(database)
    assert found["a"].worker_micros == found["b"].worker_micros == 9_990_000


async def test_hostile_workspace_names_come_back_as_they_are(windmill: Connection, database: Database) -> None:
    names = ["quote\"'s", "new\nline", "ümläut 🜁", "back\\slash", "x" * 50]
    for name in names:
        await add_completed(windmill, name, duration_ms=1000)
    assert set(await usage(database)) == set(names)
