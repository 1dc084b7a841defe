"""Fixtures of the queue tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from exporter.database.database import Database
from exporter.queue.history import History


@pytest.fixture
async def history(database: Database) -> AsyncIterator[History]:
    history = History(database)
    yield history
    await history.close()
