"""Requests of every kind to every operation that the service describes: what comes back is what it said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import requests
import schemathesis
from aiohttp import ClientSession
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode, Response
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation

from exporter.database.database import Connection
from exporter.demo.postgres import EmbeddedPostgres
from exporter.web.grafana.metrics import METRICS
from tests.fairness.replicas import enable
from tests.fairness.scene import add_completed, add_running
from tests.fuzz.strict import Description
from tests.product import eventually, process, working
from tests.queue.scene import HOSTILE_NAMES, Job, add_jobs, add_sample
from tests.test_process import unused_port

FLAGS = ("--fairness.mode=enforce", "--queue.mode=sample", "--queue.interval-seconds=1", "--web.enable-lifecycle=true")
TIMEOUT_SECONDS = 30
Verdict = Callable[[Case[Any], Response], None]


# The schema alone seldom comes upon what is stored.
stored_tags = st.sampled_from(HOSTILE_NAMES) | st.text(max_size=5)
tag_filters = st.fixed_dictionaries(
    {"key": st.just("tag"), "operator": st.sampled_from(["=", "!=", "=~", "!~", "=|", "!=|"])},
    optional={"value": stored_tags, "values": st.lists(stored_tags, max_size=3)},
)
targets = st.fixed_dictionaries(
    {"target": st.sampled_from(tuple(METRICS))},
    optional={
        "refId": st.text(max_size=5),
        "hide": st.booleans(),
        "payload": st.fixed_dictionaries(
            {},
            optional={"tags": st.lists(stored_tags, max_size=4), "limit": st.sampled_from([0, 1, 50, "5", "", None])},
        ),
    },
)
data_requests = st.fixed_dictionaries(
    {"targets": st.lists(targets, min_size=1, max_size=4)},
    optional={
        "maxDataPoints": st.integers(-5, 10**6) | st.floats(allow_nan=False, allow_infinity=False),
        "filters": st.lists(tag_filters, max_size=2),
        "range": st.fixed_dictionaries({}, optional={"from": st.sampled_from([0, "1970-01-01T00:00:00Z", None, ""])}),
    },
)
row_requests = st.tuples(
    st.sampled_from(["/api/queue/points", "/api/queue/grid", "/api/queue/current"]),
    st.fixed_dictionaries(
        {"tag": st.lists(stored_tags, max_size=3)},
        optional={"series": st.sampled_from(["count", "delay"]), "step": st.sampled_from(["60", "1e9", "3600.5"])},
    ),
)


def bounded(examples: int) -> settings:
    """The same examples in every run."""
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


async def lay_out(windmill: Connection) -> None:
    """Rows behind every answer: jobs, stored samples, caps, under names of every kind."""
    await enable(windmill)
    await add_running(windmill, "noisy", started_ago=60)
    await add_completed(windmill, "noisy", duration_ms=34_000, completed_ago=8)
    for name in HOSTILE_NAMES:
        await add_jobs(windmill, Job(tag=name, workspace=name[:50]), number=2)
        for kind in ("count", "delay"):
            await add_sample(windmill, f"queue_{kind}_{name}", "3", 60)
            await add_sample(windmill, f"queue_{kind}_{name}", '{"since": 1}', 30)


def send_everything(url: str, examples: int, verdict: Verdict) -> int:
    """Send `examples` requests of each kind to each operation, over one connection. Gives how many were sent."""
    sent = 0
    with requests.Session() as session:
        schema = schemathesis.openapi.from_dict(session.get(f"{url}/api/openapi.json", timeout=TIMEOUT_SECONDS).json())
        for result in schema.get_all_operations():
            assert isinstance(result, Ok)
            operation: APIOperation[Any, Any, Any, Any] = result.ok()
            for mode in GenerationMode:
                if mode is GenerationMode.NEGATIVE and not takes_anything(operation):
                    continue

                @bounded(examples)
                @given(case=operation.as_strategy(generation_mode=mode))
                def send(case: Case[Any]) -> None:
                    nonlocal sent
                    sent += 1
                    verdict(case, case.call(base_url=url, session=session, timeout=TIMEOUT_SECONDS))

                send()
    return sent


def described(description: Description, case: Case[Any], response: Response) -> None:
    """Fail unless the service said that it may answer so."""
    content_type = response.headers["content-type"][0]
    description.check(case.path, case.method, response.status_code, content_type, response.content)


async def description_of(url: str) -> Description:
    """What the service says of itself."""
    async with ClientSession() as session, session.get(f"{url}/api/openapi.json") as response:
        return Description(await response.json())


def takes_anything(operation: APIOperation[Any, Any, Any, Any]) -> bool:
    """Whether there is something that could be wrong about a request."""
    described = operation.definition.raw
    return "parameters" in described or "requestBody" in described


async def test_no_request_gets_anything_but_what_is_described(windmill: Connection, windmill_url: str) -> None:
    await lay_out(windmill)
    async with process(*FLAGS, environment={"DATABASE_URL": windmill_url}) as product:
        await eventually(product.url, working("fairness", "queue"))
        description = await description_of(product.url)
        seen: set[int] = set()

        def judge(case: Case[Any], response: Response) -> None:
            seen.add(response.status_code)
            assert response.status_code < 500, case.as_curl_command()
            described(description, case, response)

        assert await asyncio.to_thread(send_everything, product.url, 20, judge) > 400
        assert seen == {200, 400}
    assert "Traceback" not in product.log
    assert "level=error" not in product.log


async def test_requests_for_what_is_stored_are_answered_as_described(windmill: Connection, windmill_url: str) -> None:
    await lay_out(windmill)
    async with process(*FLAGS, environment={"DATABASE_URL": windmill_url}) as product:
        await eventually(product.url, working("fairness", "queue"))
        description = await description_of(product.url)
        filled = 0

        def judge(path: str, method: str, response: requests.Response) -> None:
            nonlocal filled
            assert response.status_code in {200, 400}, response.text
            content_type = response.headers["Content-Type"]
            answer = description.check(path, method, response.status_code, content_type, response.content)
            filled += response.status_code == 200 and answer != []

        def send_all() -> None:
            with requests.Session() as session:

                @bounded(80)
                @given(body=data_requests, rows=row_requests)
                def send(body: object, rows: tuple[str, dict[str, Any]]) -> None:
                    posted = session.post(f"{product.url}/grafana/query", json=body, timeout=TIMEOUT_SECONDS)
                    judge("/grafana/query", "post", posted)
                    path, query = rows
                    judge(path, "get", session.get(product.url + path, params=query, timeout=TIMEOUT_SECONDS))

                send()

        await asyncio.to_thread(send_all)
        assert filled > 80
    assert "Traceback" not in product.log


async def test_without_a_database_the_worst_is_503(template_loaded: EmbeddedPostgres) -> None:
    url = f"postgresql://postgres@127.0.0.1:{unused_port()}/windmill?sslmode=disable"
    async with process(*FLAGS, environment={"DATABASE_URL": url}) as product:
        description = await description_of(product.url)
        seen: set[int] = set()

        def judge(case: Case[Any], response: Response) -> None:
            seen.add(response.status_code)
            described(description, case, response)

        await asyncio.to_thread(send_everything, product.url, 4, judge)
        assert seen == {200, 400, 503}
    assert "Traceback" not in product.log
