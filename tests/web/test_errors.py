"""Errors: one JSON shape, one log line, nothing of the inside."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from io import BytesIO

import pytest
from aiohttp import ClientSession, web

from exporter.web.app import HEADERS, MAX_BODY_BYTES
from tests.web.serving import Service, listening, plain_client


async def fail(_request: web.Request) -> web.Response:
    raise RuntimeError("secret inside")


async def read_body(request: web.Request) -> web.Response:
    await request.read()
    return web.Response()


async def send_away(_request: web.Request) -> web.Response:
    raise web.HTTPSeeOther("/")


@pytest.fixture
async def client(service: Service) -> AsyncIterator[ClientSession]:
    """A client of the application with handlers that fail."""
    app = service.app()
    for path, handler in (("/fail", fail), ("/read", read_body), ("/away", send_away)):
        app.router.add_route("*", path, handler)
    async with listening(app) as listener, plain_client(listener) as session:
        yield session


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, object, object]]:
    """Level, status and path of each line logged."""
    return [(each.levelno, getattr(each, "status", None), getattr(each, "path", None)) for each in caplog.records]


async def test_an_unknown_path_is_404_as_json_and_one_line(
    client: ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with client.get("/nothing?password=x") as response:
        assert (response.status, response.content_type) == (404, "application/json")
        assert await response.json() == {
            "message": "There is nothing at this path.",
            "error": {"code": "not_found", "message": "There is nothing at this path."},
        }
    assert lines(caplog) == [(logging.INFO, 404, "/nothing")]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_another_method_is_405_and_says_which_are_allowed(client: ClientSession, method: str) -> None:
    async with client.request(method, "/metrics") as response:
        assert response.status == 405
        assert response.headers["Allow"] == "GET,HEAD"
        assert (await response.json())["error"]["code"] == "method_not_allowed"


async def test_a_body_over_1_mib_is_413(client: ClientSession) -> None:
    async with client.post("/read", data=BytesIO(b"x" * (MAX_BODY_BYTES + 1))) as response:
        assert response.status == 413
        assert (await response.json())["error"]["code"] == "too_large"
    async with client.post("/read", data=BytesIO(b"x" * (MAX_BODY_BYTES - 1))) as response:
        assert response.status == 200


async def test_an_unforeseen_error_is_500_and_only_the_log_knows_more(
    client: ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    async with client.get("/fail") as response:
        assert response.status == 500
        text = await response.text()
    assert "secret" not in text
    assert "Traceback" not in text
    assert '"code":"internal"' in text
    assert lines(caplog) == [(logging.ERROR, 500, "/fail")]
    assert "secret inside" in caplog.text


async def test_a_redirect_is_not_an_error(client: ClientSession) -> None:
    async with client.get("/away", allow_redirects=False) as response:
        assert response.status == 303


async def test_probes_and_scrapes_log_nothing(client: ClientSession, caplog: pytest.LogCaptureFixture) -> None:
    """Field case F91."""
    caplog.set_level(logging.INFO)
    for path in ("/metrics", "/-/healthy", "/-/ready", "/"):
        async with client.get(path) as response:
            assert response.status == 200
    assert lines(caplog) == []


async def test_a_probe_that_is_refused_logs_nothing_either(
    client: ClientSession, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """A state is logged when it changes, not at each probe."""
    caplog.set_level(logging.INFO)
    service.reason = "The exporter is shutting down."
    async with client.get("/-/ready") as response:
        assert response.status == 503
    assert lines(caplog) == []


@pytest.mark.parametrize("path", ["/", "/metrics", "/-/healthy", "/nothing", "/fail"])
async def test_every_answer_has_the_security_headers(client: ClientSession, path: str) -> None:
    async with client.get(path) as response:
        assert {name: response.headers.getall(name) for name in HEADERS} == {k: [v] for k, v in HEADERS.items()}
    assert "script-src" not in HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in HEADERS["Content-Security-Policy"]
