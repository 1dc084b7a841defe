"""Requests that are too large or malformed, and many of them: refused, logged seldom, and forgotten."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import tracemalloc

import pytest

from exporter.throttle import PAUSE_SECONDS, Throttle
from exporter.web.listen import Listener
from exporter.web.protocol_log import ProtocolLog
from tests.web.serving import Service, listening

POST = b"POST / HTTP/1.1\r\nHost: x\r\n"
SMUGGLING = {
    "length and chunks": POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bare return": b"GET / HTTP/1.1\r\nHost: x\r\nX-A: a\rb\r\n\r\n",
    "newline in a chunk extension": POST + b"Transfer-Encoding: chunked\r\n\r\n1;a\nb\r\nx\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "negative length": POST + b"Content-Length: -1\r\n\r\n",
    "space before the colon": b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
    "no request": b"nonsense\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 100,
}


def head(*headers: str, target: str = "/-/healthy") -> bytes:
    lines = [f"GET {target} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def send(listener: Listener, request: bytes) -> bytes:
    """Everything that the server answers until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(listener.urls[0].rpartition(":")[2]))
    writer.write(request)
    try:
        async with asyncio.timeout(10):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@pytest.mark.parametrize("size", [8000, 8190, 8191, 16_000])
async def test_cookies_of_16000_bytes_are_accepted(service: Service, size: int) -> None:
    """Field case F89: they pile up behind a shared host name, and only clearing the browser would help."""
    async with listening(service.app()) as listener:
        answer = await send(listener, head("Cookie: a=" + "x" * (size - 2)))
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "request_head",
    [
        head("Cookie: a=" + "hunter2" * 6000),
        head(*(f"X-Header-{number}: hunter2" for number in range(140))),
        head(target="/" + "hunter2" * 3000),
    ],
    ids=["cookie of 42,000 bytes", "140 headers", "URL of 21,000 bytes"],
)
async def test_what_is_larger_is_refused_and_logged_without_its_content(
    service: Service, caplog: pytest.LogCaptureFixture, request_head: bytes
) -> None:
    """Field case F89."""
    caplog.set_level(logging.DEBUG)
    async with listening(service.app()) as listener:
        answers = [await send(listener, request_head) for _ in range(5)]
    assert all(answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 ")) or not answer for answer in answers)
    assert any(answers)
    told = [record for record in caplog.records if record.name.startswith("exporter")]
    assert [record.getMessage() for record in told] == ["malformed request refused"]
    assert "hunter2" not in str([vars(record) for record in told])


@pytest.mark.parametrize("request_bytes", SMUGGLING.values(), ids=SMUGGLING)
async def test_malformed_requests_are_400_and_closed_and_logged_once(
    service: Service, caplog: pytest.LogCaptureFixture, request_bytes: bytes
) -> None:
    """Field case F90."""
    caplog.set_level(logging.INFO)
    async with listening(service.app()) as listener:
        for _ in range(3):
            answer = await send(listener, request_bytes)
            assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 ", b"HTTP/1.1 405 ")), answer[:80]
            assert answer.count(b"HTTP/1.") == 1
    assert len([record for record in caplog.records if record.levelno > logging.INFO]) == 0
    assert len([record for record in caplog.records if record.getMessage() == "malformed request refused"]) <= 1


async def test_memory_stays_flat_over_thousands_of_unknown_paths_and_methods(service: Service) -> None:
    """Field case F90: an unmatched route once left something behind for each request."""
    async with listening(service.app()) as listener:
        await ask_unknown(listener, 0, 300)
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            await ask_unknown(listener, 300, 3300)
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert after - before < 3000 * 64


async def ask_unknown(listener: Listener, first: int, last: int) -> None:
    """Requests to as many paths, every third by a method that no path takes, all over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(listener.urls[0].rpartition(":")[2]))
    for number in range(first, last):
        method = "GET" if number % 3 else "PROPFIND"
        writer.write(f"{method} /unknown/{number} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.split()[1] == b"404"
        length = next(line for line in answer.split(b"\r\n") if line.lower().startswith(b"content-length"))
        await reader.readexactly(int(length.split()[1]))
    writer.close()
    await writer.wait_closed()


def test_errors_that_are_no_malformed_request_are_logged_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    log = ProtocolLog()
    for _ in range(2):
        log.error("Unhandled exception", exc_info=RuntimeError("inside"))
    assert caplog.text.count("RuntimeError: inside") == 2


def test_one_event_a_minute_passes_and_says_how_many_did_not() -> None:
    now = [10.0]
    throttle = Throttle(lambda: now[0])
    assert [throttle.passes() for _ in range(4)] == [0, None, None, None]
    now[0] += PAUSE_SECONDS - 1
    assert throttle.passes() is None
    now[0] += 1
    assert [throttle.passes() for _ in range(2)] == [4, None]
    now[0] += PAUSE_SECONDS
    assert throttle.passes() == 1
