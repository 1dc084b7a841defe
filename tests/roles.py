"""The database roles that operators make with `deploy/sql`, as the tests use them."""

from __future__ import annotations

from typing import Final

from tests.sources import PROJECT

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
