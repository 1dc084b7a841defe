"""Whatever the tables hold, the loops go on, and every page can be read by the strictest client."""

from __future__ import annotations

import json
import logging
from io import BytesIO
from typing import Any

import pytest
from aiohttp import ClientSession
from hypothesis import HealthCheck, Phase, given, settings

from exporter.config import Config, FairnessConfig, QueueConfig
from exporter.database.database import Connection
from exporter.fairness.values import FairnessMode
from exporter.queue.values import QueueMode
from exporter.web.grafana.metrics import METRICS
from tests.fuzz.hostile_rows import Rows, replace_rows, rows
from tests.fuzz.strict import Description
from tests.product import Scrape, eventually, service, working

WRITING = Config(
    fairness=FairnessConfig(mode=FairnessMode.ENFORCE), queue=QueueConfig(mode=QueueMode.SAMPLE, interval_seconds=1)
)
ACCEPTED = {"/": ("text/html", "application/json"), "/metrics": ("text/plain", "application/openmetrics-text")}
QUERY = {"targets": [{"target": name, "refId": name, "payload": {"limit": 0}} for name in METRICS]}
BODIES: dict[str, tuple[Any, ...]] = {
    "/grafana/query": (QUERY,),
    "/grafana/variable": tuple({"payload": {"target": name}} for name in ("tags", "workspaces", "metrics")),
    "/grafana/tag-values": ({"key": "tag"},),
    "/grafana/metric-payload-options": ({"metric": "queue_count", "name": "tags"},),
}


def has_read(page: Scrape) -> bool:
    """Whether both loops work, and have a reading of their own."""
    return working("fairness", "queue")(page) and page.value("windmill_fairness_cluster_worker_seconds") is not None


async def read_every_page(url: str) -> int:
    """GET and POST whatever is described, in each of its forms, and read the answers strictly. Gives their number."""
    read = 0
    async with ClientSession() as session:
        async with session.get(f"{url}/api/openapi.json") as response:
            description = Description(await response.json())
        for path, operations in description.document["paths"].items():
            if "get" in operations:
                for accepted in ACCEPTED.get(path, ("*/*",)):
                    async with session.get(url + path, headers={"Accept": accepted}) as response:
                        assert response.status == 200, (path, await response.text())
                        description.check(path, "get", 200, response.headers["Content-Type"], await response.read())
                    read += 1
        for path, bodies in BODIES.items():
            for body in bodies:
                async with session.post(url + path, data=BytesIO(json.dumps(body).encode())) as response:
                    assert response.status == 200, (path, await response.text())
                    description.check(path, "post", 200, response.headers["Content-Type"], await response.read())
                read += 1
    return read


@settings(
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(content=rows)
async def test_whatever_the_tables_hold_every_page_is_whole(
    windmill: Connection, windmill_url: str, caplog: pytest.LogCaptureFixture, content: Rows
) -> None:
    caplog.clear()
    await replace_rows(windmill, content)
    async with service(windmill_url, WRITING) as running:
        await eventually(running.urls[0], has_read)
        assert await read_every_page(running.urls[0]) >= 25
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR or each.exc_info] == []
