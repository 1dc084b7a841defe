"""The writing modes on the older servers that are at hand; the rest of the suite runs on PostgreSQL 18."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from exporter.config import Config, FairnessConfig, QueueConfig
from exporter.demo.postgres import EmbeddedPostgres, wheel_binaries
from exporter.fairness.values import FairnessMode
from exporter.queue.values import QueueMode
from tests.fairness.scene import add_completed, add_running
from tests.product import eventually, service, working
from tests.queue.scene import Job, add_jobs
from tests.sources import WINDMILL_SCHEMA

DEBIAN = Path("/usr/lib/postgresql")


def older_binaries() -> list[Path]:
    """PostgreSQL 16 of the wheel, and whatever Debian has installed."""
    return [wheel_binaries(16), *sorted(path.parent for path in DEBIAN.glob("*/bin/postgres"))]


@pytest.fixture(params=older_binaries(), ids=lambda path: str(path.parent.name))
def older_server(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(request.param) as server:
        yield server


async def test_every_statement_of_the_writing_modes_runs(older_server: EmbeddedPostgres) -> None:
    windmill = await asyncpg.connect(older_server.url())
    try:
        await windmill.execute(WINDMILL_SCHEMA.read_text())
        await windmill.execute(
            "INSERT INTO global_settings (name, value) VALUES ('workspace_fairness_enabled', 'true')"
        )
        await add_running(windmill, "noisy", started_ago=60)
        await add_completed(windmill, "noisy", duration_ms=34_000, completed_ago=5)
        await add_completed(windmill, "quiet", duration_ms=1_000, completed_ago=2)
        await add_jobs(windmill, Job(tag="gpu", due=100))
        config = Config(
            fairness=FairnessConfig(mode=FairnessMode.ENFORCE),
            queue=QueueConfig(mode=QueueMode.SAMPLE, interval_seconds=1),
        )
        async with service(older_server.url(), config) as running:
            page = await eventually(running.urls[0], working("fairness", "queue", "retention"))
        assert page.value("windmill_fairness_capped", workspace="noisy") == 1
        assert page.value("windmill_queue_samples_total", result="stored") == 2
        assert page.value("windmill_queue_delay_seconds", tag="gpu") == pytest.approx(100, abs=5)
        assert await windmill.fetchval("SELECT count(*) FROM audit_partitioned") == 1
    finally:
        await windmill.close()
