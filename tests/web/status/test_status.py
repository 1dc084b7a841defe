"""`GET /` over HTTP: for people, for programs, from memory, with headers that let nothing foreign in."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Collection

import pytest
from aiohttp import ClientSession

from exporter import __version__
from exporter.config import WebConfig
from exporter.web.status.past import Past
from tests.metrics.scenes import snapshot
from tests.web.serving import Service, listening, plain_client
from tests.web.status.scenes import Document, hostile_snapshot

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
ASSETS = {"/assets/status.css": "text/css", "/assets/status.js": "text/javascript", "/assets/icon.svg": "image/svg+xml"}


@pytest.mark.parametrize("accept", ["*/*", "application/json", "", "text/html;q=0"])
async def test_programs_get_a_short_json(client: ClientSession, accept: str) -> None:
    async with client.get("/", headers={"Accept": accept}) as response:
        assert (response.status, response.content_type) == (200, "application/json")
        assert await response.json() == {"status": "ok", "version": __version__}
        assert response.headers["Vary"] == "Accept"


async def test_people_get_a_page(client: ClientSession) -> None:
    async with client.get("/", headers=HTML) as response:
        assert (response.status, response.content_type, response.charset) == (200, "text/html", "utf-8")
        page = Document(await response.text())
    assert "Vary" in response.headers
    assert "noisy holds 72 %" in page.texts["h1"]
    assert {link["href"] for link in page.all("a")} >= {"/metrics", "/-/healthy", "/-/ready"}


async def test_the_page_is_200_and_says_so_while_the_database_is_down(client: ClientSession, service: Service) -> None:
    service.board.current = snapshot(up=False)
    async with client.get("/", headers=HTML) as response:
        assert response.status == 200
        assert "Nothing is known yet" in await response.text()


async def test_what_is_wrong_with_the_service_is_on_the_page(client: ClientSession, service: Service) -> None:
    service.conditions["settings"] = "workspace_fairness_max_percent is a text"
    async with client.get("/", headers=HTML) as response:
        assert "workspace_fairness_max_percent is a text" in await response.text()


async def test_a_past_that_does_not_come_is_not_waited_for() -> None:
    thawed = asyncio.Event()

    async def frozen(_previous: Past, _tags: Collection[str], _now_ms: int) -> Past:
        await thawed.wait()
        return Past()

    service = Service(read=frozen)
    async with listening(service.app()) as listener, plain_client(listener) as client:
        async with asyncio.timeout(10), client.get("/", headers=HTML) as response:
            assert response.status == 200
            assert "Not read yet." in Document(await response.text()).texts["transitions"]
        assert not thawed.is_set()
        thawed.set()


async def test_the_policy_lets_in_our_own_files_only_and_nothing_inline(client: ClientSession) -> None:
    async with client.get("/", headers=HTML) as response:
        policy = dict(part.strip().split(" ", 1) for part in response.headers["Content-Security-Policy"].split(";"))
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["X-Frame-Options"] == "DENY"
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    async with client.get("/metrics") as response:
        assert "'self'" not in response.headers["Content-Security-Policy"]


@pytest.mark.parametrize(("path", "content_type"), ASSETS.items())
async def test_the_page_s_files_are_served_from_the_package(
    client: ClientSession, path: str, content_type: str
) -> None:
    async with client.get(path) as response:
        assert (response.status, response.content_type) == (200, content_type)
        assert "://" not in (await response.text()).replace("http://www.w3.org/2000/svg", "")
    async with client.head(path) as response:
        assert response.status == 200


async def test_there_are_no_other_files(client: ClientSession) -> None:
    for path in ("/assets", "/assets/", "/assets/../status.py", "/assets/status.py", "/assets/%2e%2e/status.py"):
        async with client.get(path, headers=HTML) as response:
            assert response.status == 404


async def test_the_page_is_zipped_for_those_who_ask(client: ClientSession) -> None:
    async with client.get("/", headers={**HTML, "Accept-Encoding": "gzip"}) as response:
        assert response.headers["Content-Encoding"] == "gzip"
        assert "Accept-Encoding" in response.headers["Vary"]
        assert b"noisy" in gzip.decompress(await response.read())


async def test_hostile_names_reach_nobody_as_markup(client: ClientSession, service: Service) -> None:
    service.board.current = hostile_snapshot()
    async with client.get("/", headers=HTML) as response:
        assert response.status == 200
        page = Document(await response.text())
    assert [script["src"] for script in page.all("script")] == ["/assets/status.js"]


async def test_everything_stands_under_the_prefix() -> None:
    service = Service(config=WebConfig(route_prefix="/exporter"))
    async with listening(service.app()) as listener, plain_client(listener) as client:
        async with client.get("/exporter", headers=HTML) as response:
            page = Document(await response.text())
        local = [each.get("href") or each["src"] for name in ("link", "script") for each in page.all(name)]
        local += [link["href"] for link in page.all("a")]
        assert len(local) >= 6
        for path in local:
            assert path is not None
            async with client.get(path) as response:
                assert response.status == 200, path
