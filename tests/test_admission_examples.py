"""The example dispatchers of `docs/admission.md`, run as they are printed there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from exporter.database.database import Connection
from exporter.fairness.values import Payload
from tests.metrics.scenes import fairness, snapshot
from tests.queue.scene import Job, add_jobs
from tests.sources import PROJECT
from tests.web.serving import Service, listening

TEXT = (PROJECT / "docs" / "admission.md").read_text(encoding="utf-8")
NOISY = "no\"isy '; DROP TABLE v2_job_queue; --"
Pull = Callable[[str, str], Awaitable[tuple[str, str] | None]]


def example(language: str) -> str:
    [code] = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    return str(code)


@pytest.fixture
def service() -> Service:
    """Caps a workspace, and never admits it."""
    state = snapshot(fairness(in_force=Payload((NOISY, "louder"), 0)))
    service = Service()
    service.board.current = state
    return service


@pytest.fixture
async def exporter_url(service: Service) -> AsyncIterator[str]:
    async with listening(service.app()) as listener:
        yield listener.urls[0]


@pytest.fixture(params=["python", "sh"])
def pull(request: pytest.FixtureRequest, windmill: Connection, windmill_url: str, tmp_path: Path) -> Pull:
    """One pull by an example: id and workspace of the job that it took from a tag."""
    if request.param == "python":
        names: dict[str, Any] = {}
        exec(compile(example("python"), "docs/admission.md", "exec"), names)  # noqa: S102 -- our own document

        async def by_python(url: str, tag: str) -> tuple[str, str] | None:
            job = await names["pull"](windmill, url, [tag])
            return None if job is None else (str(job["id"]), job["workspace_id"])

        return by_python
    script = tmp_path / "pull.sh"
    script.write_text(example("sh"), encoding="utf-8")

    async def by_shell(url: str, tag: str) -> tuple[str, str] | None:
        child = await asyncio.create_subprocess_exec(
            *("sh", str(script), url, windmill_url, tag),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, complaint = await child.communicate()
        assert (child.returncode, complaint) == (0, b"")
        identifier, _, workspace = out.decode().strip("\n").partition("|")
        return (identifier, workspace) if identifier else None

    return by_shell


needs_programs = pytest.mark.needs("psql", "curl")


@needs_programs
async def test_a_capped_workspace_waits_while_others_do_and_no_worker_idles(
    windmill: Connection, exporter_url: str, pull: Pull
) -> None:
    await add_jobs(windmill, Job(tag="deno", due=300, workspace=NOISY), number=2)
    await add_jobs(windmill, Job(tag="deno", due=100, workspace="quiet"), number=2)
    await add_jobs(windmill, Job(tag="other", due=900, workspace="quiet"))
    taken = [await pull(exporter_url, "deno") for _ in range(5)]
    assert [job and job[1] for job in taken] == ["quiet", "quiet", NOISY, NOISY, None]
    assert len({job[0] for job in taken if job}) == 4
    running = await windmill.fetch("SELECT tag FROM v2_job_queue WHERE running AND started_at IS NOT NULL")
    assert [row["tag"] for row in running] == ["deno"] * 4


@needs_programs
async def test_a_draw_that_admits_takes_the_head_of_the_queue(
    windmill: Connection, exporter_url: str, service: Service, pull: Pull
) -> None:
    service.board.current = snapshot(fairness(in_force=Payload((NOISY,), 10_000)))
    await add_jobs(windmill, Job(tag="deno", due=300, workspace=NOISY))
    await add_jobs(windmill, Job(tag="deno", due=100, workspace="quiet"))
    job = await pull(exporter_url, "deno")
    assert job is not None
    assert job[1] == NOISY


@needs_programs
async def test_without_an_exporter_nobody_is_left_out(windmill: Connection, pull: Pull) -> None:
    await add_jobs(windmill, Job(tag="deno", due=300, workspace=NOISY))
    await add_jobs(windmill, Job(tag="deno", due=100, workspace="quiet"))
    job = await pull("http://127.0.0.1:1", "deno")
    assert job is not None
    assert job[1] == NOISY


@needs_programs
async def test_an_exporter_that_answers_errors_leaves_nobody_out(windmill: Connection, pull: Pull) -> None:
    await add_jobs(windmill, Job(tag="deno", due=300, workspace=NOISY))

    async def fail(_request: web.Request) -> web.Response:
        return web.json_response({"message": "no"}, status=503)

    app = Service().app()
    app.router.add_get("/broken/api/admission", fail)
    async with listening(app) as listener:
        job = await pull(f"{listener.urls[0]}/broken", "deno")
    assert job is not None
    assert job[1] == NOISY


def test_the_python_example_is_as_short_as_it_says() -> None:
    assert len([line for line in example("python").splitlines() if line.strip()]) <= 22
