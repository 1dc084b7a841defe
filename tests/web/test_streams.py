"""Large answers in pieces, and bodies of requests."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator
from io import BytesIO

import pytest
from aiohttp import ClientSession, web

from exporter.web import bodies
from exporter.web.app import MAX_BODY_BYTES
from exporter.web.bodies import read_json
from exporter.web.streams import joined, stream_json
from tests.web.serving import Service, listening, plain_client


def numbers(count: int) -> Iterator[bytes]:
    return joined(b"%d" % number for number in range(count))


async def small(request: web.Request) -> web.StreamResponse:
    return await stream_json(request, numbers(3))


async def medium(request: web.Request) -> web.StreamResponse:
    return await stream_json(request, numbers(2000))


async def large(request: web.Request) -> web.StreamResponse:
    return await stream_json(request, numbers(200_000))


async def nothing(request: web.Request) -> web.StreamResponse:
    return await stream_json(request, joined(()))


async def echo(request: web.Request) -> web.StreamResponse:
    return await stream_json(request, [json.dumps(await read_json(request)).encode()])


@pytest.fixture
async def client(service: Service) -> AsyncIterator[ClientSession]:
    app = service.app()
    for handler in (small, medium, large, nothing):
        app.router.add_get(f"/{handler.__name__}", handler)
    app.router.add_post("/echo", echo)
    async with listening(app) as listener, plain_client(listener) as session:
        yield session


@pytest.mark.parametrize(("path", "count"), [("small", 3), ("medium", 2000), ("large", 200_000), ("nothing", 0)])
@pytest.mark.parametrize("encoding", ["identity", "gzip", "gzip;q=0", "deflate, br"])
async def test_the_document_is_whole_and_gzipped_only_when_asked(
    client: ClientSession, path: str, count: int, encoding: str
) -> None:
    async with client.get(f"/{path}", headers={"Accept-Encoding": encoding}) as response:
        body = await response.read()
        gzipped = encoding == "gzip" and count > 3
        assert response.headers.getall("Content-Encoding", []) == (["gzip"] if gzipped else [])
        assert response.headers["Content-Type"] == "application/json"
        assert response.headers["Vary"] == "Accept-Encoding"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert ("Content-Length" in response.headers) is (count < 200_000)
    assert json.loads(gzip.decompress(body) if gzipped else body) == list(range(count))


async def test_head_has_the_headers_and_no_body(client: ClientSession) -> None:
    for path in ("small", "large"):
        async with client.head(f"/{path}") as response:
            assert (response.status, await response.read()) == (200, b"")
            assert response.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    "body", [b"", b"  \n", b"null", b"{}", b'{"a": [1, 2.5, "x"]}', b"99999999999999999999", b"[]"]
)
async def test_bodies_are_json_or_empty(client: ClientSession, body: bytes) -> None:
    async with client.post("/echo", data=body) as response:
        assert response.status == 200
        assert await response.json() == (json.loads(body) if body.strip() else None)


@pytest.mark.parametrize(
    "body",
    [b"{", b"NaN", b'{"a": NaN}', b"[Infinity]", b"-Infinity", b"\xff", b'"\xff"', b"[" * 500_000, b"{}{}", b"a=1"],
)
async def test_other_bodies_are_400_by_name(client: ClientSession, body: bytes) -> None:
    """Field case F63."""
    async with client.post("/echo", data=body) as response:
        assert response.status == 400
        answer = await response.json()
        assert answer["message"].startswith("body: ")
        assert answer["error"]["code"] == "bad_request"


async def test_a_body_over_1_mib_is_413(client: ClientSession) -> None:
    async with client.post("/echo", data=BytesIO(b"x" * (MAX_BODY_BYTES + 1))) as response:
        assert response.status == 413
        assert "message" in await response.json()


async def test_a_body_that_does_not_come_is_not_waited_for(
    client: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "DEADLINE_SECONDS", 0.1)

    async def drip() -> AsyncIterator[bytes]:
        yield b"["
        await asyncio.sleep(1)
        yield b"]"

    async with client.post("/echo", data=drip()) as response:
        assert response.status == 400
        assert "within 0.1 s" in (await response.json())["message"]
