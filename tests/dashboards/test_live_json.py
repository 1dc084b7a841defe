"""Every query of the JSON dashboard, posted to the live product as the plugin posts it, returns data."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import ClientSession

from exporter.database.database import Connection
from tests.dashboards.cluster import ENFORCING, TOO_LONG_TO_STORE, WAITING, lay_out_load, load_going_on
from tests.dashboards.committed import JSON, Target, dashboards, expanded, targets
from tests.product import eventually, service, working

STORED = sorted(set(WAITING) - {TOO_LONG_TO_STORE})
PATIENCE_SECONDS = 30


async def post(client: ClientSession, path: str, body: Mapping[str, Any]) -> Any:
    """The answer of one of the datasource's endpoints."""
    async with client.post(f"/grafana{path}", json=body) as response:
        text = await response.text()
        assert response.status == 200, text
    return json.loads(text)


async def ask(client: ClientSession, target: Target, tags: list[str] | str) -> list[Any]:
    """What the plugin receives for one query of the last hour; `tags` is what the variable `tag` stands for."""
    now = datetime.now(UTC)
    window = {"from": (now - timedelta(hours=1)).isoformat(), "to": now.isoformat()}
    payload = expanded(target.query["payload"], {"tag": tags})
    query = {**target.query, "payload": json.loads(payload) if payload else {}}
    request = {"range": window, "maxDataPoints": 1200, "intervalMs": 3000, "targets": [query]}
    return list(await post(client, "/query", request))


def has_data(answer: list[Any]) -> bool:
    """Whether there is something to draw in every entry of an answer."""
    return bool(answer) and all(
        entry["rows"] if entry.get("type") == "table" else entry["datapoints"] for entry in answer
    )


async def without_data(client: ClientSession, tags: list[str] | str) -> list[str]:
    """The queries that return nothing, even after a while: two samples make a line."""
    for _ in range(PATIENCE_SECONDS):
        missing = [target.where for target in targets(JSON) if not has_data(await ask(client, target, tags))]
        if not missing:
            break
        await asyncio.sleep(1)
    return missing


def every_tag() -> str:
    """What All of the variable `tag` stands for."""
    [dashboard] = dashboards(JSON)
    [_, variable] = dashboard["templating"]["list"]
    return str(variable["allValue"])


@pytest.fixture
async def client(windmill: Connection, windmill_url: str) -> AsyncIterator[ClientSession]:
    """A client of the product that enforces and samples, as soon as everything that the dashboard shows is there."""
    await lay_out_load(windmill)
    async with load_going_on(windmill), service(windmill_url, ENFORCING) as running:
        await eventually(running.urls[0], working("fairness", "queue"))
        async with ClientSession(running.urls[0]) as session:
            assert await without_data(session, every_tag()) == []
            yield session


async def test_every_query_returns_data_for_all_tags_and_for_chosen_ones(client: ClientSession) -> None:
    assert await without_data(client, every_tag()) == []
    assert await without_data(client, STORED) == []


async def test_the_variable_offers_the_tags_that_the_queries_know(client: ClientSession) -> None:
    [dashboard] = dashboards(JSON)
    [_, variable] = dashboard["templating"]["list"]
    offered = await post(client, "/variable", {"payload": {"target": variable["query"]["query"]}})
    assert {each["__value"] for each in offered} >= set(STORED)


async def test_a_chosen_tag_is_drawn_alone_and_all_are_drawn_together(client: ClientSession) -> None:
    for target in targets(JSON):
        if target.query["target"] in {"queue_count", "queue_delay"}:
            assert [entry["target"] for entry in await ask(client, target, ["gpu"])] == ["gpu"]
            assert sorted(entry["target"] for entry in await ask(client, target, every_tag())) == STORED


async def test_tables_have_the_columns_that_the_panels_name(client: ClientSession) -> None:
    [dashboard] = dashboards(JSON)
    tables = {panel["targets"][0]["target"]: panel for panel in dashboard["panels"] if panel["type"] == "table"}
    assert set(tables) == {"queue_current", "fairness_shares"}
    for target in targets(JSON):
        if panel := tables.get(target.query["target"]):
            [answer] = await ask(client, target, every_tag())
            columns = {column["text"] for column in answer["columns"]}
            [named] = [each["options"] for each in panel["transformations"] if each["id"] == "filterFieldsByName"]
            assert set(named["include"]["names"]) <= columns


async def test_a_cap_is_an_annotation_that_names_its_workspace(client: ClientSession) -> None:
    [events] = [target for target in targets(JSON) if target.query["target"] == "fairness_events"]
    [answer] = await ask(client, events, every_tag())
    columns = [column["text"] for column in answer["columns"]]
    assert columns == ["time", "timeEnd", "title", "text", "tags"]
    assert any("noisy" in row[columns.index("title")] for row in answer["rows"])
