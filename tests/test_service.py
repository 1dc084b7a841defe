"""The whole product against real PostgreSQL: modes, roles, missing things, replicas, clocks."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from exporter.config import Config, DatabaseConfig, FairnessConfig, MetricsConfig, QueueConfig
from exporter.database.database import Connection
from exporter.fairness.values import FairnessMode
from exporter.queue.values import QueueMode
from tests import roles
from tests.fairness.scene import add_completed, add_running
from tests.product import eventually, scrape, service, working
from tests.queue.scene import Job, add_jobs
from tests.roles import MakeRole

WRITING = Config(
    fairness=FairnessConfig(mode=FairnessMode.ENFORCE), queue=QueueConfig(mode=QueueMode.SAMPLE, interval_seconds=1)
)
WRITES = """
SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::int
  FROM pg_stat_user_tables WHERE relname NOT LIKE 'pg_%'
"""


async def enable(windmill: Connection) -> None:
    await windmill.execute("INSERT INTO global_settings (name, value) VALUES ('workspace_fairness_enabled', 'true')")


async def make_noisy(windmill: Connection) -> None:
    await add_running(windmill, "noisy", started_ago=60)
    await add_completed(windmill, "noisy", duration_ms=34_000, completed_ago=5)
    await add_completed(windmill, "quiet", duration_ms=1_000, completed_ago=2)


def settings_view(config: Config) -> Config:
    """`config` with the view of the settings."""
    fairness = FairnessConfig(mode=config.fairness.mode, settings_relation=roles.SETTINGS_VIEW)
    return Config(fairness=fairness, queue=config.queue)


async def test_the_defaults_work_under_a_role_that_can_write_nothing(windmill: Connection, role: MakeRole) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    await add_jobs(windmill, Job(tag="gpu", due=100, workspace="quiet"))
    url = await role(roles.OBSERVE)
    await windmill.execute("SELECT pg_stat_force_next_flush()")
    before = await windmill.fetchval(WRITES)
    async with service(url, settings_view(Config())) as running:
        page = await eventually(running.urls[0], working("fairness", "queue"))
        assert page.value("windmill_fairness_would_cap", workspace="noisy") == 1
        assert page.value("windmill_fairness_capped", workspace="noisy") == 0
        assert page.value("windmill_queue_waiting_jobs", tag="gpu") == 1
        assert page.value("windmill_queue_workers", tag="gpu") == 0
        assert page.value("windmill_queue_delay_seconds", tag="gpu") == pytest.approx(100, abs=5)
        assert page.value("windmill_workspace_waiting_jobs", workspace="quiet") == 1
    assert await windmill.fetchval(WRITES) == before
    assert await windmill.fetchval("SELECT count(*) FROM background_task_state") == 0
    assert await windmill.fetchval("SELECT count(*) FROM metrics") == 0


async def test_the_writing_modes_work_under_exactly_the_rights_they_need(windmill: Connection, role: MakeRole) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    await add_jobs(windmill, Job(tag="gpu", due=100))
    url = await role(roles.OBSERVE, roles.ENFORCE)
    async with service(url, settings_view(WRITING)) as running:
        page = await eventually(running.urls[0], working("fairness", "queue", "retention"))
        assert page.value("windmill_fairness_capped", workspace="noisy") == 1
        assert page.value("windmill_fairness_state", state="capping") == 1
        assert page.value("windmill_fairness_transitions_total", transition="capped") == 1
        assert page.value("windmill_fairness_audit_failures_total") == 0
        assert page.value("windmill_queue_samples_total", result="stored") == 2
    ids = [row["id"] for row in await windmill.fetch("SELECT id FROM metrics ORDER BY id")]
    assert ids == ["queue_count_gpu", "queue_delay_gpu"]
    assert await windmill.fetchval("SELECT count(*) FROM audit_partitioned") == 1


async def test_a_role_that_row_security_filters_makes_one_collector_fail_by_name(
    windmill: Connection, role: MakeRole
) -> None:
    """Zero rows without an error would mean that nobody is ever capped."""
    await make_noisy(windmill)
    url = await role(roles.OBSERVE)
    await windmill.execute("DROP POLICY windmill_exporter_observe_select ON v2_job")
    async with service(url, settings_view(Config())) as running:
        page = await eventually(running.urls[0], working("queue"))
        page = await eventually(
            running.urls[0],
            lambda page: (
                page.value("windmill_exporter_collector_failures_total", collector="fairness", reason="row_security")
                == 1
            ),
        )
        assert not page.succeeds("fairness")
        assert page.value("windmill_fairness_cluster_worker_seconds") is None
        status = running.board.current.collector("fairness")
        assert status is not None
        assert status.problem is not None
        assert "v2_job" in status.problem
        await windmill.execute(roles.OBSERVE)
        await eventually(running.urls[0], working("fairness"))


async def test_an_audit_log_that_row_security_hides_is_named_and_never_taken_for_an_empty_one(
    windmill: Connection, role: MakeRole
) -> None:
    """Beside another writer only the audit log knows since when somebody is capped."""
    await enable(windmill)
    await windmill.execute(
        "INSERT INTO background_task_state (name, value) "
        'VALUES (\'workspace_fairness\', \'{"overloaded": ["other"], "admission_ppm": 77}\')'
    )
    url = await role(roles.OBSERVE)
    await windmill.execute("DROP POLICY windmill_exporter_observe_select ON audit_partitioned")
    async with service(url, settings_view(Config())) as running:
        page = await eventually(running.urls[0], working("fairness"))
        assert page.value("windmill_fairness_capped_workspaces") == 1
        assert page.value("windmill_fairness_capped_since_timestamp_seconds", workspace="other") is None
        problem = running.conditions.problems["capped_since"]
    assert "audit_partitioned" in problem
    assert "CREATE POLICY" in problem


@pytest.mark.parametrize(
    ("break_it", "mend_it", "broken", "named"),
    [
        (
            "ALTER TABLE v2_job_runtime RENAME TO gone",
            "ALTER TABLE gone RENAME TO v2_job_runtime",
            "fairness",
            "v2_job_runtime",
        ),
        ("ALTER TABLE worker_ping RENAME TO gone", "ALTER TABLE gone RENAME TO worker_ping", "queue", "worker_ping"),
        ("ALTER TABLE metrics RENAME TO gone", "ALTER TABLE gone RENAME TO metrics", "queue", "metrics"),
        (
            "ALTER TABLE v2_job_queue RENAME suspend_until TO other",
            "ALTER TABLE v2_job_queue RENAME other TO suspend_until",
            "fairness",
            "suspend_until",
        ),
    ],
)
async def test_what_is_missing_breaks_its_own_collector_only_and_recovers_without_a_restart(
    windmill: Connection,
    windmill_url: str,
    caplog: pytest.LogCaptureFixture,
    break_it: str,
    mend_it: str,
    broken: str,
    named: str,
) -> None:
    """Field case F31."""
    caplog.set_level("INFO", logger="exporter")
    other = {"fairness": "queue", "queue": "fairness"}[broken]
    config = Config(queue=QueueConfig(interval_seconds=1))
    async with service(windmill_url, config) as running:
        await eventually(running.urls[0], working("fairness", "queue"))
        await windmill.execute(break_it)
        page = await eventually(running.urls[0], lambda page: not page.succeeds(broken))
        assert page.value("windmill_exporter_up") == 1
        families = {
            "fairness": "windmill_fairness_cluster_worker_seconds",
            "queue": "windmill_queue_other_waiting_jobs",
        }
        assert page.value(families[broken]) is None
        assert page.value(families[other]) is not None
        assert page.succeeds(other)
        await asyncio.sleep(2.5)
        await windmill.execute(mend_it)
        await eventually(running.urls[0], working("fairness", "queue"))
    told = [record for record in caplog.records if getattr(record, "condition", None) == broken]
    assert [record.levelname for record in told] == ["WARNING", "INFO"]
    assert named in told[0].getMessage()


async def test_a_denied_queue_is_a_failure_and_never_a_drain(windmill: Connection, role: MakeRole) -> None:
    """Field case F32."""
    await enable(windmill)
    await add_jobs(windmill, Job(tag="gpu", due=100))
    url = await role(roles.OBSERVE, roles.ENFORCE)
    async with service(url, settings_view(WRITING)) as running:
        await eventually(running.urls[0], working("queue"))
        await windmill.execute(f"REVOKE SELECT (scheduled_for) ON v2_job_queue FROM {roles.OBSERVE_ROLE}")
        page = await eventually(running.urls[0], lambda page: not page.succeeds("queue"))
        assert page.value("windmill_queue_waiting_jobs", tag="gpu") is None
    values = [json.loads(row["value"]) for row in await windmill.fetch("SELECT value::text FROM metrics")]
    assert 0 not in values


async def test_three_replicas_export_the_same_numbers(windmill: Connection, windmill_url: str) -> None:
    """Field case F83."""
    await enable(windmill)
    await make_noisy(windmill)
    await add_jobs(windmill, Job(tag="gpu", due=100), number=9)
    config = Config(fairness=FairnessConfig(mode=FairnessMode.ENFORCE), queue=QueueConfig(mode=QueueMode.SAMPLE))
    async with (
        service(windmill_url, config) as one,
        service(windmill_url, config) as two,
        service(windmill_url, config) as three,
    ):
        urls = [each.urls[0] for each in (one, two, three)]
        for name, labels in (
            ("windmill_fairness_capped_since_timestamp_seconds", {"workspace": "noisy"}),
            ("windmill_queue_head_since_timestamp_seconds", {"tag": "gpu"}),
        ):
            pages = [await eventually(url, lambda page: page.value(name, **labels) is not None) for url in urls]  # noqa: B023 -- called within its turn
            assert len({page.value(name, **labels) for page in pages}) == 1
        assert [page.value("windmill_queue_waiting_jobs", tag="gpu") for page in pages] == [9, 9, 9]
    assert await windmill.fetchval("SELECT count(*) FROM metrics") == 2
    assert await windmill.fetchval("SELECT count(*) FROM audit_partitioned WHERE operation LIKE '%.capped'") == 1


@pytest.mark.parametrize("shift_seconds", [-240, 240, 365 * 86_400])
async def test_nothing_depends_on_this_hosts_clock(
    windmill: Connection, windmill_url: str, monkeypatch: pytest.MonkeyPatch, shift_seconds: int
) -> None:
    """Field case F58."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + shift_seconds)
    await add_jobs(windmill, Job(tag="gpu", due=100))
    async with service(windmill_url, Config(queue=QueueConfig(mode=QueueMode.SAMPLE))) as running:
        page = await eventually(running.urls[0], working("queue"))
    assert page.value("windmill_queue_delay_seconds", tag="gpu") == pytest.approx(100, abs=5)
    head = page.value("windmill_queue_head_since_timestamp_seconds", tag="gpu")
    assert head == pytest.approx(real() - 100, abs=5)


async def test_a_role_with_two_connections_is_enough(windmill: Connection, role: MakeRole) -> None:
    """Field case F24."""
    url = await role(roles.OBSERVE)
    await windmill.execute(f"ALTER ROLE {roles.OBSERVE_ROLE} CONNECTION LIMIT 2")
    async with service(url, settings_view(Config(queue=QueueConfig(interval_seconds=1)))) as running:
        await eventually(running.urls[0], working("fairness", "queue"))
        await asyncio.sleep(2.5)
        page = await scrape(running.urls[0])
        failures = [value for (name, _), value in page.samples.items() if name.endswith("collector_failures_total")]
        assert sum(failures) == 0


async def test_a_replica_that_exports_only_itself_has_no_cluster_families(windmill_url: str) -> None:
    async with service(windmill_url, Config(metrics=MetricsConfig(cluster=False))) as running:
        page = await eventually(running.urls[0], working("fairness", "queue"))
    names = {name for name, _ in page.samples}
    assert not any(name.startswith("windmill_queue_other") for name in names)
    assert "windmill_fairness_cluster_worker_seconds" not in names
    assert "windmill_fairness_refreshes_total" in names


async def test_a_decoy_in_the_connections_schema_is_never_read(windmill: Connection, windmill_url: str) -> None:
    """Field case F04: Windmill's tables in a schema of their own, another table of that name where one looks first."""
    await windmill.execute(
        "ALTER SCHEMA public RENAME TO wm; CREATE SCHEMA public; CREATE TABLE public.metrics (a int)"
    )
    await add_jobs_in(windmill, "wm")
    config = Config(database=DatabaseConfig(schema="wm"), queue=QueueConfig(mode=QueueMode.SAMPLE))
    async with service(windmill_url, config) as running:
        page = await eventually(running.urls[0], working("fairness", "queue"))
        assert page.value("windmill_queue_waiting_jobs", tag="gpu") == 1
    assert await windmill.fetchval("SELECT count(*) FROM wm.metrics") == 2


async def add_jobs_in(windmill: Connection, schema: str) -> None:
    await windmill.execute(
        f"INSERT INTO {schema}.v2_job_queue (id, workspace_id, scheduled_for, tag) "
        "VALUES (gen_random_uuid(), 'w', now() - interval '1 minute', 'gpu')"
    )
