"""Windmill's own published client reads our answers with its own models."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from windmill_api import Client
from windmill_api.api.worker import (
    get_counts_of_jobs_waiting_per_tag,
    get_queue_metrics,
    get_queue_metrics_series,
    get_queue_status,
    get_workspace_fairness_events,
)
from windmill_api.types import UNSET

from exporter.database.database import Connection
from tests.product import eventually, service, working
from tests.queue.scene import Job, add_jobs, add_sample


async def test_the_published_client_parses_every_shape(windmill_url: str, windmill: Connection) -> None:
    await add_jobs(windmill, Job(tag="gpu", due=100), Job(tag="busy", running=True))
    await add_sample(windmill, "queue_count_gpu", "3", 3000)
    await add_sample(windmill, "queue_delay_gpu", '{"since": 1e9}', 3000)
    await windmill.execute(
        "INSERT INTO audit_partitioned (workspace_id, username, operation, action_kind, resource, parameters)"
        " VALUES ('admins', 'system', 'workspace_fairness.capped', 'update', 'noisy', '{\"max_percent\": \"50\"}')"
    )
    async with service(windmill_url) as running:
        await eventually(running.urls[0], working("queue"))
        client = Client(base_url=f"{running.urls[0]}/api", raise_on_unexpected_status=True)

        async def ask(endpoint: Any, **arguments: Any) -> Any:
            return await asyncio.to_thread(endpoint.sync, client=client, **arguments)

        series = await ask(get_queue_metrics_series, window_secs=7200)
        assert series.to - series.from_ == 7_200_000
        [gpu] = series.tags
        assert (gpu.tag, gpu.additional_properties, series.additional_properties) == ("gpu", {}, {})
        assert [value for _, value in gpu.count] == [0, 3, 3, 0, 0]
        assert max(value for _, value in gpu.delay) > 1e8
        status = await ask(get_queue_status)
        assert [(one.tag, one.waiting, one.running, one.workers) for one in status] == [
            ("busy", 0, 1, 0),
            ("gpu", 1, 0, 0),
        ]
        assert status[0].delay is UNSET
        assert status[1].delay == pytest.approx(100, abs=15)
        rows = await ask(get_queue_metrics)
        assert [(one.id, len(one.values)) for one in rows] == [("queue_count_gpu", 1), ("queue_delay_gpu", 1)]
        [event] = await ask(get_workspace_fairness_events)
        assert event.workspace_id == "noisy"
        assert event.timestamp.tzinfo is not None
        assert event.parameters.additional_properties == {"max_percent": "50"}
        counts = await ask(get_counts_of_jobs_waiting_per_tag)
        assert counts.additional_properties == {"gpu": 1}
        client.get_httpx_client().close()
