"""A served application and a client for it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientSession

from tests.web.certificates import WebConfigFile, issue
from tests.web.serving import Service, listening, plain_client

# Windmill's client pins an httpx that Python 3.14 cannot import.
collect_ignore = ["test_windmill_client.py"] if sys.version_info >= (3, 14) else []


@pytest.fixture
def service() -> Service:
    """What the application of `client` is made of."""
    return Service()


@pytest.fixture
async def client(service: Service) -> AsyncIterator[ClientSession]:
    """A client of the application behind a real socket."""
    async with listening(service.app()) as listener, plain_client(listener) as session:
        yield session


@pytest.fixture
def web_config(tmp_path: Path) -> WebConfigFile:
    """A place for a web config file, with a certificate, its key, and the authority of the clients."""
    issue(tmp_path)
    return WebConfigFile(tmp_path)
