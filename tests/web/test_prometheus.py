"""A real Prometheus scrapes the service and stores exactly what the snapshot says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiohttp import ClientSession

from exporter.config import WebConfig
from tests.metrics.scenes import NOW, fairness, queue, snapshot, tag
from tests.metrics.test_exposition import HOSTILE, writable
from tests.prometheus import first_answer, prometheus, query
from tests.web.serving import Service, listening

CONFIG = """\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: exporter
    metrics_path: {path}
    static_configs: [{{targets: ["{target}"]}}]
"""


NOT_COUNTED = "up|scrape_.*|windmill_exporter_http_.*"


@pytest.mark.needs("prometheus")
async def test_prometheus_stores_the_snapshot_as_it_is(tmp_path: Path) -> None:
    """Every hostile tag, every number, every sample and the metadata that only OpenMetrics has."""
    service = Service(config=WebConfig(route_prefix="/exporter"))
    tags = {writable(name): number + 1 for number, name in enumerate(HOSTILE)}
    service.board.current = snapshot(fairness(), queue([tag(name, number) for name, number in tags.items()]))
    async with listening(service.app()) as listener:
        target = listener.urls[0].removeprefix("http://").removesuffix("/exporter")
        async with prometheus(tmp_path, CONFIG.format(target=target, path="/exporter/metrics")) as session:
            series = await first_answer(session, "windmill_queue_waiting_jobs")
            assert {each["metric"].get("tag", ""): float(each["value"][1]) for each in series} == tags
            expected = {
                "up": 1,
                'windmill_fairness_share_ratio{workspace="noisy"}': 0.72,
                "windmill_fairness_capped_since_timestamp_seconds": NOW - 42.5,
                "sum(windmill_exporter_collector_failures_total)": 0,
                f'count({{job="exporter",__name__!~"{NOT_COUNTED}"}})': await samples_on_the_page(listener.urls[0]),
            }
            assert {each: await number(session, each) for each in expected} == expected
            assert await metadata(session, "windmill_queue_delay_seconds") == ("gauge", "seconds")


async def number(session: ClientSession, expression: str) -> float:
    """The number of an instant query with one series."""
    [series] = await query(session, expression)
    return float(series["value"][1])


async def metadata(session: ClientSession, name: str) -> tuple[str, str]:
    """The type and the unit that Prometheus knows of a family."""
    async with session.get("/api/v1/metadata", params={"metric": name}) as response:
        [found] = json.loads(await response.text())["data"][name]
    return found["type"], found["unit"]


async def samples_on_the_page(url: str) -> int:
    """Lines that are samples; requests have none before the first one was answered."""
    async with ClientSession() as session, session.get(f"{url}/metrics") as response:
        lines = (await response.text()).split("\n")
    return len([line for line in lines if line and not line.startswith(("#", "windmill_exporter_http_"))])
