"""Requests of every kind to every operation that the service describes: what comes back is what it said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import requests
import schemathesis
from aiohttp import ClientSession
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode, Response
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation

from exporter.database.database import Connection
from exporter.demo.postgres import EmbeddedPostgres
from tests.fairness.replicas import enable
from tests.fairness.scene import add_completed, add_running
from tests.fuzz.strict import Description
from tests.product import eventually, process, working
from tests.queue.scene import HOSTILE_NAMES, Job, add_jobs, add_sample
from tests.test_process import unused_port

FLAGS = ("--fairness.mode=enforce", "--queue.mode=sample", "--queue.interval-seconds=1", "--web.enable-lifecycle=true")
TIMEOUT_SECONDS = 30
Verdict = Callable[[Case, Response], None]


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
        schema.config.update(base_url=url)
        for result in schema.get_all_operations():
            assert isinstance(result, Ok)
            operation: APIOperation = result.ok()
            for mode in GenerationMode:
                if mode is GenerationMode.NEGATIVE and not takes_anything(operation):
                    continue

                @settings(
                    max_examples=examples,
                    derandomize=True,
                    database=None,
                    deadline=None,
                    suppress_health_check=list(HealthCheck),
                )
                @given(case=operation.as_strategy(generation_mode=mode))
                def send(case: Case) -> None:
                    nonlocal sent
                    sent += 1
                    verdict(case, case.call(base_url=url, session=session, timeout=TIMEOUT_SECONDS))

                send()
    return sent


def described(description: Description, case: Case, response: Response) -> None:
    """Fail unless the service said that it may answer so."""
    content_type = response.headers["content-type"][0]
    description.check(case.path, case.method, response.status_code, content_type, response.content)


async def description_of(url: str) -> Description:
    """What the service says of itself."""
    async with ClientSession() as session, session.get(f"{url}/api/openapi.json") as response:
        return Description(await response.json())


def takes_anything(operation: APIOperation) -> bool:
    """Whether there is something that could be wrong about a request."""
    described = operation.definition.raw
    return "parameters" in described or "requestBody" in described


@pytest.mark.may_block("GIL of the thread that generates requests")
async def test_no_request_gets_anything_but_what_is_described(windmill: Connection, windmill_url: str) -> None:
    await lay_out(windmill)
    async with process(*FLAGS, environment={"DATABASE_URL": windmill_url}) as product:
        await eventually(product.url, working("fairness", "queue"))
        description = await description_of(product.url)
        seen: set[int] = set()

        def judge(case: Case, response: Response) -> None:
            seen.add(response.status_code)
            assert response.status_code < 500, case.as_curl_command()
            described(description, case, response)

        assert await asyncio.to_thread(send_everything, product.url, 20, judge) > 500
        assert {200, 400} <= seen
    assert "Traceback" not in product.log
    assert "level=error" not in product.log


async def test_without_a_database_the_worst_is_503(template_loaded: EmbeddedPostgres) -> None:
    url = f"postgresql://postgres@127.0.0.1:{unused_port()}/windmill?sslmode=disable"
    async with process(*FLAGS, environment={"DATABASE_URL": url}) as product:
        description = await description_of(product.url)
        seen: set[int] = set()

        def judge(case: Case, response: Response) -> None:
            seen.add(response.status_code)
            described(description, case, response)

        await asyncio.to_thread(send_everything, product.url, 5, judge)
        assert {200, 400, 503} == seen
    assert "Traceback" not in product.log
