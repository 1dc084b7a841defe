"""The metrics page over HTTP."""

from __future__ import annotations

import gzip

import pytest
from aiohttp import ClientSession

from exporter.metrics.exposition import Exposition
from exporter.snapshot import Snapshot
from tests.metrics.scenes import parsed
from tests.web.serving import Service

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


async def test_without_any_header_the_answer_is_plain_text(client: ClientSession) -> None:
    async with client.get("/metrics") as response:
        body = await response.read()
    assert response.status == 200
    assert response.headers.getall("Content-Type") == ["text/plain; version=0.0.4; charset=utf-8"]
    assert "Content-Encoding" not in response.headers
    assert response.headers["Vary"] == "Accept, Accept-Encoding"
    assert b"# EOF" not in body
    assert parsed(body, Exposition.TEXT)["windmill_queue_waiting_jobs", (("tag", "tag-0"),)] == 5


async def test_openmetrics_is_answered_to_those_who_ask(client: ClientSession) -> None:
    async with client.get("/metrics", headers={"Accept": OPENMETRICS}) as response:
        body = await response.read()
    assert response.headers.getall("Content-Type") == ["application/openmetrics-text; version=1.0.0; charset=utf-8"]
    assert body.endswith(b"# EOF\n")
    assert parsed(body, Exposition.OPENMETRICS)["windmill_exporter_up", ()] == 1


async def test_accept_headers_sent_twice_count_together(client: ClientSession) -> None:
    headers = [("Accept", "text/plain;q=0.1"), ("Accept", OPENMETRICS)]
    async with client.get("/metrics", headers=headers) as response:
        assert response.content_type == "application/openmetrics-text"


async def test_gzip_is_answered_to_those_who_ask(client: ClientSession) -> None:
    async with client.get("/metrics") as response:
        plain = await response.read()
    async with client.get("/metrics", headers={"Accept-Encoding": "gzip"}) as response:
        body = await response.read()
    assert response.headers["Content-Encoding"] == "gzip"
    assert response.headers["Content-Length"] == str(len(body))
    assert gzip.decompress(body) == plain


@pytest.mark.parametrize("encoding", ["identity", "gzip;q=0", "br", "*"])
async def test_nobody_else_gets_gzip(client: ClientSession, encoding: str) -> None:
    async with client.get("/metrics", headers={"Accept-Encoding": encoding}) as response:
        assert "Content-Encoding" not in response.headers
        assert (await response.read()).startswith(b"# HELP ")


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_head_has_the_headers_of_get_and_no_body(client: ClientSession, encoding: str) -> None:
    headers = {"Accept-Encoding": encoding, "Accept": OPENMETRICS}
    async with client.get("/metrics", headers=headers) as got, client.head("/metrics", headers=headers) as head:
        for name in ("Content-Type", "Content-Length", "Vary"):
            assert head.headers[name] == got.headers[name]
        assert head.headers.get("Content-Encoding") == got.headers.get("Content-Encoding")
        assert await head.read() == b""


async def test_names_filter_the_page(client: ClientSession) -> None:
    query = [("name[]", "windmill_queue_workers"), ("name[]", "windmill_exporter_up")]
    async with client.get("/metrics", params=query, headers={"Accept-Encoding": "gzip"}) as response:
        samples = parsed(gzip.decompress(await response.read()), Exposition.TEXT)
    assert {name for name, _ in samples} == {"windmill_queue_workers", "windmill_exporter_up"}


async def test_names_that_match_nothing_are_an_empty_page(client: ClientSession) -> None:
    async with client.get("/metrics?name[]=%00%ff&name[]=x") as response:
        assert (response.status, await response.read()) == (200, b"")


@pytest.mark.parametrize("seconds", ["1.0", "0.001", "abc", "-1", "0", "NaN", "inf", "1e9", ""])
async def test_no_scrape_timeout_of_the_scraper_is_an_error(client: ClientSession, seconds: str) -> None:
    """Field case F81: the page comes from memory, within any deadline."""
    headers = [("X-Prometheus-Scrape-Timeout-Seconds", seconds), ("X-Prometheus-Scrape-Timeout-Seconds", "2")]
    async with client.get("/metrics", headers=headers) as response:
        assert response.status == 200


async def test_the_page_is_200_when_nothing_works(client: ClientSession, service: Service) -> None:
    service.board.current = Snapshot()
    async with client.get("/metrics") as response:
        assert response.status == 200
        assert parsed(await response.read(), Exposition.TEXT)["windmill_exporter_up", ()] == 0


async def test_requests_are_counted_by_route_and_never_by_what_the_client_sent(
    client: ClientSession, service: Service
) -> None:
    for path in ("/metrics", "/metrics//", "/nothing", "/nothing/else", "/-/healthy"):
        async with client.get(path) as response:
            await response.read()
    async with client.post("/metrics") as response:
        await response.read()
    [requests] = [each for each in service.own.metrics() if each.family.name.endswith("request_duration_seconds")]
    counted = {sample.labels: sample.value for sample in requests.samples if sample.suffix == "_count"}
    assert counted == {
        ("/metrics", "2xx"): 2,
        ("/-/healthy", "2xx"): 1,
        ("other", "4xx"): 3,
    }
