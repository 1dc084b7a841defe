"""Every query of the dashboards and every rule, in a real Prometheus that scrapes the product, returns data."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from aiohttp import ClientSession

from exporter.database.database import Connection
from exporter.demo.postgres import EmbeddedPostgres
from tests.conftest import TEMPLATE
from tests.dashboards.cluster import WAITING, Fleet, running_fleet
from tests.dashboards.committed import PROMETHEUS, Target, dashboards, expanded, rules, targets

EVERYTHING = {"job": "windmill", "workspace": ".*", "tag": ".*", "__rate_interval": "15s"}
CHOSEN = {**EVERYTHING, "workspace": ["noisy", "quiet"], "tag": ["gpu", "deno"]}
SELECTOR = re.compile(r"windmill_\w+\{[^}]*\}")
LABEL_VALUES = re.compile(r"label_values\((.*), (\w+)\)")
PATIENCE_SECONDS = 30

pytestmark = pytest.mark.needs("prometheus")


@pytest.fixture
async def stale_url(template_loaded: EmbeddedPostgres) -> AsyncIterator[str]:
    """URL of one more database."""
    admin = await asyncpg.connect(template_loaded.url())
    await admin.execute(f"CREATE DATABASE windmill_stale TEMPLATE {TEMPLATE}")
    yield template_loaded.url(database="windmill_stale")
    await admin.execute("DROP DATABASE windmill_stale WITH (FORCE)")
    await admin.close()


@pytest.fixture
async def fleet(windmill: Connection, windmill_url: str, stale_url: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    """The whole scene."""
    async with running_fleet(windmill, windmill_url, stale_url, tmp_path) as running:
        yield running


async def get(session: ClientSession, path: str, **parameters: Any) -> Any:
    """The data of an answer of Prometheus, which must be a success."""
    async with session.get(path, params=parameters) as response:
        answer = json.loads(await response.text())
    assert answer["status"] == "success", answer
    return answer["data"]


async def ask(session: ClientSession, target: Target, variables: Mapping[str, Any]) -> list[Any]:
    """What a panel would show: the series of its query now, or of the last minute."""
    expression = expanded(target.query["expr"], variables)
    if target.query["instant"]:
        found = await get(session, "/api/v1/query", query=expression)
    else:
        now = time.time()
        found = await get(session, "/api/v1/query_range", query=expression, start=now - 60, end=now, step=1)
    return list(found["result"])


async def without_data(session: ClientSession, variables: Mapping[str, Any]) -> list[str]:
    """The queries that return nothing."""
    return [target.where for target in targets(PROMETHEUS) if not await ask(session, target, variables)]


async def still_without_data(session: ClientSession, variables: Mapping[str, Any]) -> list[str]:
    """The queries that return nothing even after a while: rates need a few scrapes."""
    for _ in range(PATIENCE_SECONDS):
        if not (missing := await without_data(session, variables)):
            break
        await asyncio.sleep(1)
    return missing


async def selectors_without_data(fleet: Fleet) -> list[str]:
    """The selectors in queries that find nothing: a query of several can hide one behind the others."""
    queries = [expanded(target.query["expr"], EVERYTHING) for target in targets(PROMETHEUS)]
    selectors = sorted({found for query in queries for found in SELECTOR.findall(query)})
    assert len(selectors) > 25
    return [selector for selector in selectors if not await series(fleet, f"last_over_time({selector}[1m])")]


async def number(fleet: Fleet, uid: str, title: str) -> float:
    """The number of a panel with one query and one series."""
    [target] = [each for each in targets(PROMETHEUS) if each.where == f"{uid}: {title}: A"]
    [series] = await ask(fleet.session, target, EVERYTHING)
    return float(series["value"][1])


async def test_every_query_of_every_panel_returns_data(fleet: Fleet) -> None:
    assert await still_without_data(fleet.session, EVERYTHING) == []
    assert await still_without_data(fleet.session, CHOSEN) == []
    assert await selectors_without_data(fleet) == []
    for dashboard in dashboards(PROMETHEUS):
        for variable in dashboard["templating"]["list"][1:]:
            match = LABEL_VALUES.fullmatch(expanded(variable["query"]["query"], EVERYTHING))
            assert match is not None
            found = await get(fleet.session, f"/api/v1/label/{match[2]}/values", **{"match[]": match[1]})
            assert {"job": "windmill", "workspace": "noisy", "tag": "gpu"}[variable["name"]] in found
    # Several replicas export the same backlog: it counts once.
    assert await number(fleet, "windmill-queues", "Waiting jobs") == sum(WAITING.values())
    assert await number(fleet, "windmill-queues", "Tags without a worker") == 1
    assert await number(fleet, "windmill-fairness", "Capped workspaces now") == 1
    assert await number(fleet, "windmill-fairness", "Age of the decision") < 30
    assert await number(fleet, "windmill-fairness", "Longest wait of the others") > 700


async def test_every_rule_is_evaluated_and_every_alert_has_a_state_in_which_it_fires(fleet: Fleet) -> None:
    recorded = [rule["record"] for rule in rules() if "record" in rule]
    expressions = {rule["alert"]: rule["expr"] for rule in rules() if "alert" in rule}
    absent = expressions.pop("WindmillExporterAbsent")
    wanted = {name: name for name in recorded} | expressions
    for _ in range(PATIENCE_SECONDS):
        missing = [name for name, expression in wanted.items() if not await series(fleet, expression)]
        if not missing:
            break
        await asyncio.sleep(1)
    assert missing == []
    assert await series(fleet, absent) == []
    assert len(await series(fleet, absent, at=time.time() - 3600)) == 1
    groups = (await get(fleet.session, "/api/v1/rules"))["groups"]
    evaluated = [rule for group in groups for rule in group["rules"]]
    assert len(evaluated) == len(rules())
    assert [rule for rule in evaluated if rule["health"] != "ok"] == []


async def series(fleet: Fleet, expression: str, at: float | None = None) -> list[Any]:
    """The series of an expression at a time, now by default."""
    moment = {} if at is None else {"time": at}
    return list((await get(fleet.session, "/api/v1/query", query=expression, **moment))["result"])
