"""The landing page."""

from __future__ import annotations

from dataclasses import replace

from aiohttp import ClientSession

from exporter import __version__
from exporter.snapshot import CollectorStatus
from exporter.web.landing import landing_page
from tests.metrics.scenes import full_snapshot, snapshot
from tests.web.serving import Service

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def test_programs_get_a_short_json(client: ClientSession) -> None:
    async with client.get("/", headers={"Accept": "*/*"}) as response:
        assert (response.status, response.content_type) == (200, "application/json")
        assert await response.json() == {"status": "ok", "version": __version__}
        assert response.headers["Vary"] == "Accept"


async def test_people_get_a_page_that_links_everything(client: ClientSession) -> None:
    async with client.get("/", headers=HTML) as response:
        text = await response.text()
    assert (response.status, response.content_type, response.charset) == (200, "text/html", "utf-8")
    assert __version__ in text
    for path in ("/metrics", "/-/healthy", "/-/ready"):
        assert f'<a href="{path}">' in text


async def test_the_page_is_200_while_the_database_is_down(client: ClientSession, service: Service) -> None:
    service.board.current = snapshot(up=False)
    async with client.get("/", headers=HTML) as response:
        assert response.status == 200
        assert "The database cannot be reached." in await response.text()


def test_what_is_wrong_with_a_collector_is_said_in_words() -> None:
    broken = CollectorStatus("fairness", success=False, problem="The table v2_job_runtime is missing.")
    page = landing_page(replace(full_snapshot(), collectors=(broken, CollectorStatus("queue", success=True))), "")
    assert "<li>fairness: The table v2_job_runtime is missing.</li>" in page
    assert "<li>queue: working</li>" in page
    assert "<li>retention: has not read anything yet</li>" in landing_page(snapshot(up=False), "")


async def test_strings_from_the_database_are_escaped(client: ClientSession, service: Service) -> None:
    problem = "<script>alert('\"&\ud800')</script>"
    service.board.update_collector(CollectorStatus("queue", success=False, problem=problem))
    async with client.get("/", headers=HTML) as response:
        text = await response.text()
    assert "<script" not in text
    assert "&lt;script&gt;alert(&#x27;&quot;&amp;?&#x27;)" in text


def test_links_stand_under_the_prefix() -> None:
    assert '<a href="/exporter/metrics">/exporter/metrics</a>' in landing_page(full_snapshot(), "/exporter")
