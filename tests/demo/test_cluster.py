"""The simulated cluster does to the tables what Windmill's workers do, and goes by the decision in force."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import asyncpg
import pytest

from exporter.database.database import Connection
from exporter.demo.cluster import Cluster, DecisionInForce
from exporter.demo.load import NOISY, SERVED_TAGS, UNSERVED_WORKSPACE, Load
from exporter.demo.measures import measure_waits, share_of_worker_time
from exporter.demo.postgres import EmbeddedPostgres
from exporter.demo.session import Rule, create_database
from exporter.fairness.values import Payload

NOBODY_CAPPED = DecisionInForce(Payload(), None)
SMALL = Load(workers=10, quiet_tenants=2, backlog_seconds=10)
SATURATED = Load(workers=20, quiet_tenants=10, quiet_percent=100, backlog_seconds=20)


@contextlib.asynccontextmanager
async def playing(url: str, load: Load, decision: DecisionInForce = NOBODY_CAPPED) -> AsyncIterator[Cluster]:
    """A cluster at work in the background."""
    async with Cluster(url, load, 1, lambda: decision) as cluster:
        task = asyncio.create_task(cluster.run())
        try:
            yield cluster
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def until_true(connection: Connection, condition: str) -> None:
    async with asyncio.timeout(10):
        while not await connection.fetchval(f"SELECT {condition}"):  # noqa: ASYNC110 -- the state is in the database
            await asyncio.sleep(0.05)


async def test_completed_jobs_leave_the_queue_and_keep_their_times(windmill: Connection, windmill_url: str) -> None:
    async with playing(windmill_url, SMALL):
        await until_true(windmill, "count(*) > 5 FROM v2_job_completed")
    assert await windmill.fetchval("SELECT count(*) FROM v2_job_completed JOIN v2_job_queue USING (id)") == 0
    assert await windmill.fetchval("SELECT count(*) FROM v2_job_completed JOIN v2_job_runtime USING (id)") == 0
    rows = await windmill.fetch(
        """SELECT status::text, duration_ms,
                  round(1000 * date_part('epoch', completed_at - started_at)) = duration_ms AS consistent
             FROM v2_job_completed JOIN v2_job USING (id, workspace_id)"""
    )
    assert {(row["status"], row["consistent"]) for row in rows} == {("success", True)}
    assert min(row["duration_ms"] for row in rows) >= 80


async def test_as_many_jobs_run_as_there_are_workers(windmill: Connection, windmill_url: str) -> None:
    async with playing(windmill_url, SMALL):
        await until_true(windmill, "count(*) = 10 FROM v2_job_queue WHERE running")
        for _ in range(20):
            assert await windmill.fetchval("SELECT count(*) FROM v2_job_queue WHERE running") <= 10
            await asyncio.sleep(0.02)


async def test_only_pulled_jobs_have_pinged_and_they_go_on_pinging(windmill: Connection, windmill_url: str) -> None:
    async with playing(windmill_url, SMALL):
        await until_true(windmill, "count(*) = 10 FROM v2_job_queue WHERE running")
        assert await windmill.fetchval(
            "SELECT bool_and(running = (ping IS NOT NULL)) FROM v2_job_queue JOIN v2_job_runtime USING (id)"
        )
        await until_true(
            windmill, "max(ping - started_at) > interval '1 second' FROM v2_job_queue JOIN v2_job_runtime USING (id)"
        )
        oldest = "SELECT max(now() - ping) < interval '1.5 seconds' FROM v2_job_runtime WHERE ping IS NOT NULL"
        assert await windmill.fetchval(oldest)


async def test_the_noisy_backlog_stands_from_the_first_moment(windmill: Connection, windmill_url: str) -> None:
    async with playing(windmill_url, SMALL):
        await until_true(windmill, "count(*) > 0 FROM v2_job_queue WHERE running")
        await until_true(
            windmill, f"count(*) = {SMALL.backlog} FROM v2_job_queue WHERE NOT running AND workspace_id = '{NOISY}'"
        )


async def test_the_tag_that_no_worker_serves_piles_up(windmill: Connection, windmill_url: str) -> None:
    load = Load(workers=2, quiet_tenants=1, quiet_percent=1)
    async with playing(windmill_url, load) as cluster:
        await until_true(windmill, f"count(*) > 0 FROM v2_job_queue WHERE workspace_id = '{UNSERVED_WORKSPACE}'")
        assert any(job.workspace == UNSERVED_WORKSPACE for job in cluster.waiting)
    assert (
        await windmill.fetchval("SELECT count(*) FROM v2_job_completed WHERE workspace_id = $1", UNSERVED_WORKSPACE)
        == 0
    )


async def test_every_worker_is_registered_with_the_tags_it_serves(windmill: Connection, windmill_url: str) -> None:
    async with playing(windmill_url, SMALL):
        await until_true(windmill, "count(*) = 10 FROM worker_ping WHERE ping_at > now() - interval '10 seconds'")
    tags = await windmill.fetch("SELECT DISTINCT custom_tags FROM worker_ping")
    assert [row["custom_tags"] for row in tags] == [list(SERVED_TAGS)]


async def test_the_records_agree_with_the_tables(windmill: Connection, windmill_url: str) -> None:
    async with playing(windmill_url, SMALL) as cluster:
        await until_true(windmill, "count(*) > 5 FROM v2_job_completed")
    ended = [run for run in cluster.runs_since(0) if run.ended_at is not None]
    stored = await windmill.fetchval("SELECT count(*) FROM v2_job_completed")
    # The last batch may be stored without the workers having heard of it.
    assert stored - SMALL.workers <= len(ended) <= stored
    assert all(run.arrived_at <= run.started_at for run in cluster.runs_since(0))
    waiting = await windmill.fetchval("SELECT count(*) FROM v2_job_queue WHERE NOT running")
    assert abs(len(cluster.waiting) - waiting) <= SMALL.workers


async def test_runs_since_a_moment_are_those_that_held_a_worker_then_or_later(windmill_url: str) -> None:
    async with playing(windmill_url, SMALL) as cluster:
        await asyncio.sleep(4.5)
    everything, since = cluster.runs_since(0), cluster.runs_since(3.5)
    assert {*since} == {run for run in everything if run.ended_at is None or run.ended_at >= 3.5}
    assert 0 < len(since) < len(everything)


@pytest.fixture
async def two_databases(postgres: EmbeddedPostgres) -> AsyncIterator[tuple[str, str]]:
    """Fresh databases as the demo makes them."""
    names = ("shares_constant", "shares_weighted")
    yield (
        await create_database(postgres, names[0], fairness_enabled=True),
        await create_database(postgres, names[1], fairness_enabled=True),
    )
    admin = await asyncpg.connect(postgres.url())
    for name in names:
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await admin.close()


async def test_a_constant_probability_misses_the_target_and_the_weighted_one_holds_it(
    two_databases: tuple[str, str],
) -> None:
    """Steady decisions: p = t = 0.55, and the p_c that t, 3.4 s and 0.1 s give, with quiet tenants that saturate."""

    async def share(url: str, admission_ppm: int) -> float | None:
        decision = DecisionInForce(Payload((NOISY,), admission_ppm), 1.0)
        async with playing(url, SATURATED, decision) as cluster:
            await asyncio.sleep(12)
        return share_of_worker_time(cluster.runs_since(0), NOISY, 5, 12)

    constant, weighted = await asyncio.gather(share(two_databases[0], 5500), share(two_databases[1], 347))
    assert constant is not None
    assert weighted is not None
    assert constant > 0.9
    assert weighted == pytest.approx(0.55, abs=0.12)


async def test_a_decision_that_is_too_old_caps_nobody(windmill_url: str) -> None:
    stale = DecisionInForce(Payload((NOISY,), 0), 61.0)
    async with playing(windmill_url, SMALL, stale) as cluster:
        await asyncio.sleep(2)
    assert share_of_worker_time(cluster.runs_since(0), NOISY, 0, 2) == pytest.approx(1, abs=0.05)
    waits = measure_waits(cluster.runs_since(0), cluster.waiting, SMALL.quiet_workspaces, 0, 2)
    assert waits.p95_seconds is not None
    assert waits.p95_seconds > 1


def test_a_rule_is_printed_as_it_is_called() -> None:
    assert [rule.value for rule in Rule] == ["fairness off", "constant p = t", "duration-weighted"]
