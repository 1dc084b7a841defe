"""Every error that the exporter raises on purpose, in one tree.

Messages are sentences for an operator: they name the setting, the file or the table, and what to do. No message
ever holds a password.

    ExporterError
    ├── ConfigError                 the configuration cannot be used; holds every problem found (exit code 2)
    ├── DemoError                   the demo cannot run here
    ├── HealthcheckFailed           the running replica does not answer
    ├── BadRequest                  a request asks for what cannot be; `field` names what is at fault
    │   └── BadWindow               a window of time that is none
    ├── TooManyRows                 an answer would not be bounded
    └── DatabaseError               one statement, transaction or connection failed; `reason` is a metric label
        ├── DatabaseUnavailable     no connection: refused, lost, authentication, TLS, backing off
        ├── DatabaseTimeout         a deadline of ours or a limit of the server ended it
        ├── MissingCapability       a table, column, privilege or row policy is missing
        └── StatementFailed         the server refused the statement for another reason
"""

from __future__ import annotations

from collections.abc import Sequence


class ExporterError(Exception):
    """Base of all errors below; its text is safe to show to an operator."""


class ConfigError(ExporterError):
    """The configuration cannot be used. `problems` holds one located sentence each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class DemoError(ExporterError):
    """The demo cannot run on this machine; the text says why and what to do."""


class HealthcheckFailed(ExporterError):
    """The replica on this host does not answer that it is healthy; the text says what it did instead."""


class BadRequest(ExporterError):
    """A request asks for what cannot be; `field` names the part of it that is at fault."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class BadWindow(BadRequest):
    """The window of time that a request asks for is none."""


class TooManyRows(ExporterError):
    """An answer would hold more rows than a client can use; the text says what to ask for instead."""


class DatabaseError(ExporterError):
    """A statement, a transaction or a connection failed.

    `reason` is a short, bounded word for the metric label `reason`; `sqlstate` is the server's code where it sent one;
    `retryable` says that a failover or a restart explains it, so that one retry on a fresh connection makes sense.
    """

    def __init__(self, message: str, *, reason: str, sqlstate: str | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.sqlstate = sqlstate
        self.retryable = retryable


class DatabaseUnavailable(DatabaseError):
    """No usable connection.

    Reasons: unreachable, starting, authentication, tls, connection_limit, no_such_database, no_writable_server,
    configuration (the URL or a file that it names cannot be used), connection_lost, backoff, pool_exhausted, closed.
    """


class DatabaseTimeout(DatabaseError):
    """A deadline of ours, or a limit of the server, ended it. Reasons: deadline, statement_timeout, lock_timeout."""


class MissingCapability(DatabaseError):
    """The database does not offer what a collector needs.

    Reasons: missing_schema, missing_table, missing_column, missing_privilege, row_security.
    """


class StatementFailed(DatabaseError):
    """The server refused a statement. Reasons: read_only, statement_error."""
