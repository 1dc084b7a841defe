"""A served application and a client for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession

from tests.web.serving import Service, listening, plain_client


@pytest.fixture
def service() -> Service:
    """What the application of `client` is made of."""
    return Service()


@pytest.fixture
async def client(service: Service) -> AsyncIterator[ClientSession]:
    """A client of the application behind a real socket."""
    async with listening(service.app()) as listener, plain_client(listener) as session:
        yield session
