"""Listening: addresses, families, errors, the parser behind the socket."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import aiohttp.http_parser
import pytest
from aiohttp import ClientSession
from hypothesis import given
from hypothesis import strategies as st

from exporter.config import WebConfig
from exporter.errors import ConfigError
from exporter.web.listen import ListenAddress, bind, parse_listen_address, start_listening
from tests.web.serving import Service, listening


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        (":9480", "", 9480),
        (":0", "", 0),
        ("127.0.0.1:9480", "127.0.0.1", 9480),
        ("192.0.2.7:65535", "192.0.2.7", 65535),
        ("[::1]:9480", "::1", 9480),
        ("[::]:80", "::", 80),
        ("[fe80::1%eth0]:80", "fe80::1%eth0", 80),
        ("localhost:9480", "localhost", 9480),
        ("exporter-0.windmill_ns:9480", "exporter-0.windmill_ns", 9480),
    ],
)
def test_addresses_are_host_and_port(text: str, host: str, port: int) -> None:
    assert parse_listen_address(text) == ListenAddress(host, port)
    assert str(parse_listen_address(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "9480",
        "localhost",
        "::1:9480",
        "[::1]",
        ":65536",
        ":-1",
        ":http",
        "[]:80",
        "http://localhost:80",
        ":80 ",
        ":٣",
    ],
)
def test_what_is_no_address_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^web\.listen_address: expected \"host:port\"") as caught:
        parse_listen_address(text)
    assert f'got "{text}"' in str(caught.value)


@given(st.text(":[]019af.", max_size=12))
def test_any_text_is_an_address_or_a_located_error(text: str) -> None:
    with suppress(ConfigError):
        assert 0 <= parse_listen_address(text).port <= 65535


async def get(url: str) -> int:
    async with ClientSession() as session, session.get(url) as response:
        return response.status


async def test_without_a_host_every_family_is_served_on_one_port(service: Service) -> None:
    async with listening(service.app(), ":0") as listener:
        [url] = listener.urls
        port = url.rpartition(":")[2]
        assert url == f"http://localhost:{port}"
        hosts = ["127.0.0.1", "[::1]"] if socket.has_dualstack_ipv6() else ["127.0.0.1"]
        for host in hosts:
            assert await get(f"http://{host}:{port}/-/healthy") == 200


async def test_a_machine_without_ipv6_is_served_over_ipv4(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    async with listening(service.app(), ":0") as listener:
        port = listener.urls[0].rpartition(":")[2]
        assert await get(f"http://127.0.0.1:{port}/-/healthy") == 200


async def test_one_host_is_served_on_its_address_alone(service: Service) -> None:
    async with listening(service.app(), "127.0.0.1:0") as listener:
        assert await get(f"{listener.urls[0]}/-/healthy") == 200
        port = int(listener.urls[0].rpartition(":")[2])
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.2", port), timeout=1)


async def test_the_url_carries_the_prefix() -> None:
    service = Service(config=WebConfig(route_prefix="exporter/"))
    listener = await start_listening(service.app(), ListenAddress("127.0.0.1", 0))
    await listener.stop()
    assert listener.urls[0].endswith("/exporter")


def test_a_taken_port_is_a_located_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigError, match=rf'web\.listen_address: cannot listen on "127\.0\.0\.1:{port}": .*in use'
        ):
            bind(ListenAddress("127.0.0.1", port))


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_that_is_not_ours_is_a_located_error(host: str) -> None:
    with pytest.raises(ConfigError, match=rf'^web\.listen_address: cannot listen on "{host}:0": .'):
        bind(ListenAddress(host, 0))


async def test_stopping_closes_the_listener_and_finishes_what_is_under_way(service: Service) -> None:
    began, go = asyncio.Event(), asyncio.Event()
    app = service.app()

    async def slow(_request: aiohttp.web.Request) -> aiohttp.web.Response:
        began.set()
        await go.wait()
        return aiohttp.web.Response(text="finished")

    app.router.add_get("/slow", slow)
    listener = await start_listening(app, ListenAddress("127.0.0.1", 0))
    async with ClientSession(listener.urls[0]) as session:
        answer = asyncio.create_task(session.get("/slow"))
        await began.wait()
        stopping = asyncio.create_task(listener.stop())
        await asyncio.sleep(0.05)
        async with ClientSession() as late:
            with pytest.raises(aiohttp.ClientConnectorError):
                await late.get(f"{listener.urls[0]}/-/healthy")
        go.set()
        assert await (await answer).text() == "finished"
        await stopping


async def test_stopping_does_not_wait_for_idle_connections(service: Service) -> None:
    listener = await start_listening(service.app(), ListenAddress("127.0.0.1", 0))
    async with ClientSession(listener.urls[0]) as session:
        async with session.get("/-/healthy") as response:
            await response.read()
        async with asyncio.timeout(2):
            await listener.stop()


def test_requests_are_parsed_by_the_c_parser() -> None:
    """Field case F90: the pure Python one had request smuggling flaws."""
    assert aiohttp.http_parser.HttpRequestParser is not aiohttp.http_parser.HttpRequestParserPy


@pytest.mark.parametrize(
    "head",
    [
        b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-A: a\rb\r\n\r\n",
        b"nonsense\r\n\r\n",
    ],
)
async def test_malformed_requests_are_400_and_closed(service: Service, head: bytes) -> None:
    async with listening(service.app()) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(listener.urls[0].rpartition(":")[2]))
        writer.write(head)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
