"""The database roles that operators make with `deploy/sql`, as the tests use them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import pytest

from exporter.database.database import Connection
from tests.sources import PROJECT

MakeRole = Callable[..., Awaitable[str]]

SQL: Final = PROJECT / "deploy" / "sql"
OBSERVE: Final = (SQL / "observe.sql").read_text()
ENFORCE: Final = (SQL / "enforce.sql").read_text()
UNINSTALL: Final = (SQL / "uninstall.sql").read_text()

OBSERVE_ROLE: Final = "windmill_exporter_observe"
ENFORCE_ROLE: Final = "windmill_exporter_enforce"
SETTINGS_VIEW: Final = "windmill_exporter_settings"


def url_of(role: str, url: str) -> str:
    """A URL of the test server's superuser, turned into one of `role`."""
    return url.replace("postgres@", f"{role}@")


@pytest.fixture
async def role(windmill: Connection, windmill_url: str) -> AsyncIterator[MakeRole]:
    """Runs files of `deploy/sql` and gives the URL of the role that the last one makes; uninstalls them afterwards."""

    async def make(*scripts: str) -> str:
        for script in scripts:
            await windmill.execute(script)
        return url_of(ENFORCE_ROLE if ENFORCE in scripts else OBSERVE_ROLE, windmill_url)

    yield make
    await windmill.execute(UNINSTALL)
