"""`POST /-/reload`."""

from __future__ import annotations

import pytest
from aiohttp import ClientSession

from exporter.errors import ConfigError
from tests.web.serving import Service


class Reloads:
    """Counts reloads, which fail with `problems` if there are any."""

    def __init__(self, *problems: str) -> None:
        self.number = 0
        self._problems = problems

    async def __call__(self) -> None:
        self.number += 1
        if self._problems:
            raise ConfigError(self._problems)


@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_a_reload_that_worked_is_200(client: ClientSession, service: Service, method: str) -> None:
    service.reload = reloads = Reloads()
    async with client.request(method, "/-/reload/") as response:
        assert (response.status, await response.json()) == (200, {"status": "reloaded"})
    assert reloads.number == 1


async def test_a_configuration_that_cannot_be_used_is_500_with_every_problem(
    client: ClientSession, service: Service
) -> None:
    service.reload = Reloads("metrics.max_tags: expected an integer", "log.level: expected one of debug")
    async with client.post("/-/reload") as response:
        assert response.status == 500
        body = await response.json()
    assert body["error"]["code"] == "bad_configuration"
    assert body["message"] == (
        "The old configuration stays in force: metrics.max_tags: expected an integer; log.level: expected one of debug"
    )


async def test_it_is_403_where_it_is_not_enabled(client: ClientSession) -> None:
    """As Prometheus does."""
    async with client.post("/-/reload") as response:
        assert response.status == 403
        assert (await response.json())["message"] == "Reloading over HTTP is disabled; see web.enable_lifecycle."


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
async def test_a_link_cannot_reload(client: ClientSession, service: Service, method: str) -> None:
    service.reload = reloads = Reloads()
    async with client.request(method, "/-/reload") as response:
        assert response.status == 405
        assert response.headers["Allow"] == "POST,PUT"
    assert reloads.number == 0
