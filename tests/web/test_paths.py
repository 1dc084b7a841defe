"""Paths match however their slashes are written, and prefixes are checked."""

from __future__ import annotations

import pytest
from aiohttp import ClientSession
from yarl import URL

from exporter.config import WebConfig
from exporter.errors import ConfigError
from exporter.web.paths import parse_route_prefix, path_pattern
from tests.web.serving import Service, listening, plain_client


async def status(session: ClientSession, path: str) -> int:
    """The status of a GET for exactly this path, without following a redirect."""
    url = URL(f"{session._base_url_origin}".rstrip("/") + path, encoded=True)
    async with ClientSession() as plain, plain.get(url, allow_redirects=False) as response:
        return response.status


@pytest.mark.parametrize(
    "path",
    ["/", "//", "/metrics", "/metrics/", "//metrics", "//metrics//", "/-/healthy", "//-//healthy///", "/-/ready/"],
)
async def test_slashes_do_not_matter(client: ClientSession, path: str) -> None:
    assert await status(client, path) == 200


@pytest.mark.parametrize(
    "path", ["/metric", "/metricsx", "/-", "/-healthy", "/healthy", "/metrics/x", "/%2Fmetrics", "/-/"]
)
async def test_other_paths_are_not_found(client: ClientSession, path: str) -> None:
    assert await status(client, path) == 404


@pytest.mark.parametrize("prefix", ["/exporter", "exporter", "/exporter/"])
async def test_a_prefix_moves_everything_under_it(prefix: str) -> None:
    service = Service(config=WebConfig(route_prefix=prefix))
    async with listening(service.app()) as listener, plain_client(listener) as client:
        found = {
            path: await status(client, path)
            for path in ("/exporter", "//exporter//", "/exporter//metrics", "/exporter/-/ready")
        }
        assert set(found.values()) == {200}
        assert await status(client, "/metrics") == 404
        assert await status(client, "/") == 404


@pytest.mark.parametrize(
    ("text", "prefix"), [("", ""), ("/", ""), ("a", "/a"), ("/a/b/", "/a/b"), ("/wind.mill_-~", "/wind.mill_-~")]
)
def test_prefixes_are_brought_into_one_form(text: str, prefix: str) -> None:
    assert parse_route_prefix(text) == prefix


@pytest.mark.parametrize("text", ["/a//b", "/{x}", "/a b", "/é", "/a?b", "http://host/", "/a\n", "//a"])
def test_a_prefix_that_cannot_be_one_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^web\.route_prefix: expected a path of letters"):
        parse_route_prefix(text)


def test_the_root_has_a_pattern_too() -> None:
    assert path_pattern("/") == "/{slashes:/*}"
