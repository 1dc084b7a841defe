"""One place that turns whatever the driver or the network raises into our error tree, with bounded reasons."""

from __future__ import annotations

import re
import socket
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
_MISSING = {
    "3F000": "missing_schema",
    "42P01": "missing_table",
    "42703": "missing_column",
    "42501": "missing_privilege",
}
_TIMEOUTS = {
    "57014": "statement_timeout",
    "55P03": "lock_timeout",
    "25P03": "statement_timeout",
    "25P04": "statement_timeout",
}
# Poolers report everything as a protocol violation (08P01) or an internal error; their words tell the cases apart.
_POOLER_WORDS = (
    (re.compile(r"\b(SSL|TLS) required", re.IGNORECASE), "tls"),
    (re.compile(r"no such database|database .* does not exist", re.IGNORECASE), "no_such_database"),
    (
        re.compile(r"authentication|password|no such user|user not found|login rejected", re.IGNORECASE),
        "authentication",
    ),
    (re.compile(r"no more connections|too many|max.*(clients|connections)", re.IGNORECASE), "connection_limit"),
)


def translate(error: BaseException, purpose: str, *, closed: bool = False) -> DatabaseError:
    """The error of our tree for `error`, raised while doing `purpose` (a short name such as `fairness claim`).

    `closed` says that the connection is gone: what the driver says about that varies.
    """
    if isinstance(error, DatabaseError):
        return error
    if isinstance(error, asyncpg.PostgresError):
        return _from_server(error, purpose)
    if isinstance(error, ssl.SSLError):
        return DatabaseUnavailable(f"{purpose}: TLS failed: {error}", reason="tls", retryable=True)
    if closed or isinstance(error, OSError):
        text = f"{purpose}: the connection was lost: {error}"
        return DatabaseUnavailable(text, reason="connection_lost", retryable=True)
    return StatementFailed(f"{purpose}: {type(error).__name__}: {error}", reason="statement_error")


def translate_connecting(error: BaseException, place: str) -> DatabaseUnavailable:
    """The error of our tree for `error`, raised while connecting to `place` (host, port, database, user)."""
    reason, why, sqlstate = "unreachable", str(error) or type(error).__name__, None
    if isinstance(error, asyncpg.PostgresError):
        sqlstate = str(error.sqlstate or "")
        reason = _UNAVAILABLE.get(sqlstate, "") or next(
            (name for words, name in _POOLER_WORDS if sqlstate[:2] in {"08", "XX"} and words.search(str(error))), reason
        )
        why = f"{error} (SQLSTATE {sqlstate})"
    elif isinstance(error, (ssl.SSLError, asyncpg.InterfaceError)):
        reason = "tls" if isinstance(error, ssl.SSLError) else "authentication"
    elif isinstance(error, socket.gaierror):
        why = f"the host name does not resolve ({error.strerror})"
    elif isinstance(error, ConnectionError) and "SSL" in str(error):
        reason, why = "tls", "the server offers no TLS, and sslmode rules plain text out"
    elif isinstance(error, TimeoutError):
        why = "no answer in time"
    return DatabaseUnavailable(f"cannot connect to {place}: {why}", reason=reason, sqlstate=sqlstate)


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
