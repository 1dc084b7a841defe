"""Who may ask for what: every route asks, but the ones that must not."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, web

from exporter.config import WebConfig
from exporter.web.app import GET_ROUTES, HEADERS
from exporter.web.listen import Listener
from exporter.web.security.access import Access
from exporter.web.security.web_config import parse_web_config
from tests.web.certificates import PASSWORD, USERS, sign_in
from tests.web.serving import Service, listening, plain_client

ALICE = sign_in()
OPEN = ("/-/healthy", "/-/ready")
SPELLINGS = (
    "{}",
    "{}/",
    "//{}",
    "/x/..{}",
    "{}?a=1",
    "{}%2F",
    "/%2E{}",
    "{};a",
    "/-/healthy/..{}",
    "/-/healthy%2F..{}",
)


async def nobody_thought_of_it(_request: web.Request) -> web.Response:
    return web.Response(text="secret")


@pytest.fixture
def access() -> Iterator[Access]:
    access = Access()
    access.apply(parse_web_config("web.yml", USERS.encode()), public_metrics=False)
    yield access
    access.close()


@asynccontextmanager
async def serving(access: Access, config: WebConfig | None = None) -> AsyncIterator[ClientSession]:
    """The application with one route more, added by somebody who knows nothing of users."""
    app = Service(access=access, config=config or WebConfig()).app()
    app.router.add_route("*", "/new", nobody_thought_of_it)
    async with listening(app) as listener, plain_client(listener) as session:
        yield session


@pytest.fixture
async def client(access: Access) -> AsyncIterator[ClientSession]:
    async with serving(access) as session:
        yield session


async def status(
    client: ClientSession, path: str, method: str = "GET", headers: Mapping[str, str] | None = None
) -> int:
    async with client.request(method, path, headers=headers) as response:
        return response.status


async def test_every_route_of_the_application_asks_but_the_health_paths(client: ClientSession) -> None:
    for path in (*GET_ROUTES, "/-/reload", "/new", "/no/such/path"):
        for method in ("GET", "HEAD", "POST", "OPTIONS", "DELETE"):
            is_open = path in OPEN and method in {"GET", "HEAD"}
            assert await status(client, path, method) == (200 if is_open else 401), (path, method)


async def test_no_spelling_of_a_path_gets_around(access: Access) -> None:
    async with listening(Service(access=access).app()) as listener:
        for spelling in SPELLINGS:
            for path in ("/metrics", "/", "/api/fairness", "http://other.example/metrics"):
                assert await raw_status(listener, spelling.format(path)) in {400, 401}, spelling.format(path)
        for spelling in ("{}", "{}/", "//{}", "{}?a=1"):
            assert await raw_status(listener, spelling.format("/-/healthy")) == 200


async def raw_status(listener: Listener, target: str) -> int:
    """The status for a request line that no client would tidy up."""
    port = int(listener.urls[0].rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(answer.split()[1])


async def test_a_user_is_let_in_everywhere(client: ClientSession) -> None:
    for path in (*GET_ROUTES, "/new"):
        assert await status(client, path, headers=ALICE) in {200, 503}, "nothing but a database may be missing"
    assert await status(client, "/no/such/path", headers=ALICE) == 404


async def test_the_refusal_says_how_to_go_on(client: ClientSession) -> None:
    async with client.get("/metrics", headers=sign_in("alice", "wrong")) as response:
        assert response.status == 401
        assert response.headers["WWW-Authenticate"] == 'Basic realm="windmill-exporter", charset="UTF-8"'
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert await response.json() == {
            "message": "A user name and a password are needed here.",
            "error": {"code": "unauthorized", "message": "A user name and a password are needed here."},
        }


async def test_names_beyond_ascii_are_utf_8(access: Access) -> None:
    config = USERS.replace("alice", "'ünï'").encode()
    access.apply(parse_web_config("web.yml", config), public_metrics=False)
    async with serving(access) as client:
        assert await status(client, "/metrics", headers=sign_in("ünï", PASSWORD)) == 200


async def test_public_metrics_open_the_metrics_and_nothing_else(access: Access) -> None:
    access.apply(parse_web_config("web.yml", USERS.encode()), public_metrics=True)
    async with serving(access) as client:
        assert await status(client, "/metrics") == 200
        assert await status(client, "/") == 401
        assert await status(client, "/metricsx") == 401


async def test_health_is_open_under_a_prefix_and_only_there(access: Access) -> None:
    async with serving(access, WebConfig(route_prefix="/windmill")) as client:
        assert await status(client, "/windmill/-/healthy") == 200
        assert await status(client, "/windmill/metrics") == 401
        assert await status(client, "/-/healthy") == 401


async def test_without_users_nobody_is_asked() -> None:
    async with serving(Access()) as client:
        assert await status(client, "/metrics") == 200
        assert await status(client, "/metrics", headers=sign_in("anybody", "anything")) == 200


async def test_new_users_count_at_once_and_old_ones_no_more(access: Access, client: ClientSession) -> None:
    assert await status(client, "/metrics", headers=ALICE) == 200
    access.apply(parse_web_config("web.yml", USERS.replace("alice", "bob").encode()), public_metrics=False)
    assert await status(client, "/metrics", headers=ALICE) == 401
    assert await status(client, "/metrics", headers=sign_in("bob", PASSWORD)) == 200


async def test_headers_of_the_file_replace_ours(access: Access, client: ClientSession) -> None:
    text = USERS + "http_server_config:\n  headers:\n    X-Frame-Options: sameorigin\n    X-XSS-Protection: '0'\n"
    access.apply(parse_web_config("web.yml", text.encode()), public_metrics=False)
    for headers in (ALICE, {}):
        async with client.get("/metrics", headers=headers) as response:
            assert response.headers.getall("X-Frame-Options") == ["sameorigin"]
            assert response.headers["X-XSS-Protection"] == "0"
            assert response.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]


async def test_no_answer_is_readable_by_another_origin(client: ClientSession) -> None:
    """No CORS: neither a preflight nor an answer carries a header that would let a page of another origin read it."""
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
    for method in ("OPTIONS", "GET"):
        async with client.request(method, "/metrics", headers={**asked, **ALICE}) as response:
            assert not [name for name in response.headers if name.lower().startswith("access-control-")]


async def test_wrong_credentials_are_logged_once_a_minute_without_name_and_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    now = [1000.0]
    access = Access(clock=lambda: now[0])
    access.apply(parse_web_config("web.yml", USERS.encode()), public_metrics=False)
    async with serving(access) as client:
        assert await status(client, "/metrics") == 401
        assert caplog.records == []
        for number in range(5):
            assert await status(client, "/metrics", headers=sign_in("hunter2", f"secret{number}")) == 401
        now[0] += 61
        assert await status(client, "/metrics", headers=sign_in("hunter2", "secret")) == 401
    access.close()
    assert [record.getMessage() for record in caplog.records] == ["wrong user or password"] * 2
    assert [getattr(record, "others_not_logged") for record in caplog.records] == [0, 4]  # noqa: B009 -- a field that logging adds
    assert "hunter2" not in str([vars(record) for record in caplog.records])
    assert "secret" not in str([vars(record) for record in caplog.records])


async def test_too_many_guesses_are_503_and_health_still_answers() -> None:
    release = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(_hashed: bytes, _password: bytes) -> bool:
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result(10)
        return False

    access = Access(check=slow)
    access.apply(parse_web_config("web.yml", USERS.encode()), public_metrics=False)
    async with serving(access) as client:
        guesses = [asyncio.create_task(status(client, "/", headers=sign_in("alice", f"{n}"))) for n in range(60)]
        done, _ = await asyncio.wait(guesses, return_when=asyncio.FIRST_COMPLETED)
        assert {task.result() for task in done} == {503}
        assert await status(client, "/-/healthy") == 200
        release.set()
        assert sorted(set(await asyncio.gather(*guesses))) == [401, 503]
    access.close()


async def test_a_header_in_another_form_is_401(client: ClientSession) -> None:
    right = base64.b64encode(f"alice:{PASSWORD}".encode()).decode()
    for header in (f"Bearer {right}", right, f"Basic {right[:-4]}", "Basic", ""):
        async with client.get("/metrics", headers={"Authorization": header}) as response:
            assert response.status == 401
