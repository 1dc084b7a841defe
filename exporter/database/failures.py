"""One place that turns whatever the driver or the network raises into our error tree, with bounded reasons."""

from __future__ import annotations

import ssl

import asyncpg

from exporter.errors import (
    DatabaseError,
    DatabaseTimeout,
    DatabaseUnavailable,
    MissingCapability,
    StatementFailed,
)

_UNAVAILABLE = {
    "28P01": "authentication",
    "28000": "authentication",
    "3D000": "no_such_database",
    "53300": "connection_limit",
    "57P03": "starting",
    "57P01": "connection_lost",
    "57P02": "connection_lost",
    "57P05": "connection_lost",
}
_MISSING = {"42P01": "missing_table", "42703": "missing_column", "42501": "missing_privilege"}
_TIMEOUTS = {"57014": "statement_timeout", "55P03": "lock_timeout", "25P03": "statement_timeout"}


def translate(error: BaseException, purpose: str) -> DatabaseError:
    """The error of our tree for `error`, raised while doing `purpose` (a short name such as `fairness claim`)."""
    if isinstance(error, DatabaseError):
        return error
    if isinstance(error, asyncpg.PostgresError):
        return _from_server(error, purpose)
    if isinstance(error, ssl.SSLError):
        return DatabaseUnavailable(f"{purpose}: TLS failed: {error}", reason="tls", retryable=False)
    if isinstance(error, TimeoutError):
        return DatabaseTimeout(f"{purpose}: no answer within its deadline", reason="deadline")
    if isinstance(error, (OSError, asyncpg.InterfaceError)):
        text = f"{purpose}: the connection failed: {error}"
        return DatabaseUnavailable(text, reason="connection_lost", retryable=True)
    return StatementFailed(f"{purpose}: {type(error).__name__}: {error}", reason="statement_error")


def _from_server(error: asyncpg.PostgresError, purpose: str) -> DatabaseError:
    code = str(error.sqlstate or "")
    text = f"{purpose}: {error} (SQLSTATE {code})"
    if code in _UNAVAILABLE or code.startswith("08"):
        reason = _UNAVAILABLE.get(code, "connection_lost")
        return DatabaseUnavailable(text, reason=reason, sqlstate=code, retryable=reason == "connection_lost")
    if code in _MISSING:
        return MissingCapability(text, reason=_MISSING[code], sqlstate=code)
    if code in _TIMEOUTS:
        return DatabaseTimeout(text, reason=_TIMEOUTS[code], sqlstate=code)
    if code == "25006":
        return StatementFailed(text, reason="read_only", sqlstate=code, retryable=True)
    return StatementFailed(text, reason="statement_error", sqlstate=code)
