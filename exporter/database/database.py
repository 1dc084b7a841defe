"""Explicit, limited transactions over a small pool of connections that we check out ourselves.

Why not the driver's pool and transaction blocks: when a deadline unwinds through them they send ROLLBACK or resets to a server
that may be frozen, and wait. Here a connection that was interrupted is terminated first and forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self, TypeAlias

import asyncpg

from exporter.config import DatabaseConfig
from exporter.database.failures import translate
from exporter.database.statement import Statement, quote_identifier
from exporter.errors import DatabaseTimeout, DatabaseUnavailable, StatementFailed

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Connect: TypeAlias = Callable[[], Awaitable[Connection]]

OWN_DEADLINE_MARGIN_SECONDS = 1.0
ROLLBACK_SECONDS = 1.0

# One message: BEGIN and every limit, so that a transaction costs four round trips. A limit that the role already carries is
# kept where it is lower. SET LOCAL (set_config's third argument) leaves nothing behind on a pooled connection.
BEGIN = """\
BEGIN TRANSACTION ISOLATION LEVEL {isolation} {access};
SELECT set_config(name, CASE WHEN current_setting(name)::interval > interval '0'
                              AND current_setting(name)::interval < make_interval(secs => seconds)
                             THEN current_setting(name) ELSE (seconds * 1000)::int::text END, true)
  FROM (VALUES ('statement_timeout', {statement}), ('lock_timeout', {lock}),
               ('idle_in_transaction_session_timeout', {idle})) AS wanted (name, seconds);
SELECT set_config('application_name', {application}, true){planner}"""


class Database:
    """A pool of at most `pool_size` connections, opened on demand, and the transactions on them."""

    def __init__(self, connect: Connect, config: DatabaseConfig, application: str = "windmill-exporter") -> None:
        self._connect = connect
        self.config = config
        self._application = application
        self._slots = asyncio.Semaphore(config.pool_size)
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._closed = False
        self.schema = config.schema or "public"

    @property
    def pool_connections(self) -> Mapping[str, int]:
        """Open connections by state, for the metric of that name."""
        return {"idle": len(self._idle), "busy": len(self._busy)}

    def transaction(
        self,
        purpose: str,
        *,
        read_only: bool = True,
        isolation: str = "READ COMMITTED",
        planner: Mapping[str, str] | None = None,
        statement_seconds: float | None = None,
    ) -> Transaction:
        """A transaction to be used with `async with`; `purpose` names it in errors and in `pg_stat_activity`.

        Raises `DatabaseError` only. Leaving the block commits; an error rolls back; a deadline terminates the connection.
        """
        return Transaction(self, purpose, read_only, isolation, planner or {}, statement_seconds)

    def close(self) -> None:
        """Terminate every connection at once, those in use included."""
        self._closed = True
        for connection in [*self._idle, *self._busy]:
            connection.terminate()
        self._idle.clear()
        self._busy.clear()

    async def _check_out(self) -> Connection:
        await self._slots.acquire()
        try:
            if self._closed:
                raise DatabaseUnavailable("the database pool is closed", reason="closed")
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_closed():
                    break
            else:
                connection = await self._connect()
        except BaseException:
            self._slots.release()
            raise
        self._busy.add(connection)
        return connection

    def _check_in(self, connection: Connection, *, healthy: bool) -> None:
        self._busy.discard(connection)
        if healthy and not self._closed and not connection.is_closed():
            self._idle.append(connection)
        else:
            connection.terminate()
        self._slots.release()


class Transaction:
    """One explicit transaction. Every await on the network lies under one deadline, a second above the server's."""

    def __init__(
        self,
        database: Database,
        purpose: str,
        read_only: bool,
        isolation: str,
        planner: Mapping[str, str],
        statement_seconds: float | None,
    ) -> None:
        self._database = database
        self._purpose = purpose
        self._read_only = read_only
        self._isolation = isolation
        self._planner = planner
        self._statement_seconds = statement_seconds or database.config.statement_timeout_seconds
        self._deadline = asyncio.timeout(self._statement_seconds + OWN_DEADLINE_MARGIN_SECONDS)
        self._connection: Connection | None = None

    async def __aenter__(self) -> Self:
        await self._deadline.__aenter__()
        try:
            self._connection = await self._database._check_out()
            await self._connection.execute(self._begin())
        except BaseException as error:
            await self._abandon(error)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            await self._abandon(error)
            return
        try:
            if await self._live().execute("COMMIT") != "COMMIT":
                raise StatementFailed(f"{self._purpose}: the transaction was rolled back", reason="statement_error")
        except BaseException as failure:
            await self._abandon(failure)
            raise
        self._database._check_in(self._live(), healthy=True)
        await self._deadline.__aexit__(None, None, None)

    async def fetch(self, statement: Statement, *arguments: Any) -> list[asyncpg.Record]:
        """All rows of `statement`."""
        return await self._live().fetch(self._text(statement), *arguments)

    async def execute(self, statement: Statement, *arguments: Any) -> int:
        """Run `statement`; the number of rows that it touched."""
        status = await self._live().execute(self._text(statement), *arguments)
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    def savepoint(self, name: str) -> Savepoint:
        """A savepoint to be used with `async with`: a server error inside is undone and raised as `DatabaseError`."""
        return Savepoint(self._live(), name, self._purpose)

    def _text(self, statement: Statement) -> str:
        return statement.render({"schema": self._database.schema})

    def _live(self) -> Connection:
        if self._connection is None:
            raise StatementFailed(f"{self._purpose}: the transaction is not open", reason="statement_error")
        return self._connection

    def _begin(self) -> str:
        config = self._database.config
        planner = "".join(
            f", set_config({_literal(name)}, {_literal(value)}, true)" for name, value in self._planner.items()
        )
        return BEGIN.format(
            isolation=self._isolation,
            access="READ ONLY" if self._read_only else "READ WRITE",
            statement=self._statement_seconds,
            lock=config.lock_timeout_seconds,
            idle=self._statement_seconds + OWN_DEADLINE_MARGIN_SECONDS,
            application=_literal(f"{self._database._application} {self._purpose}"),
            planner=planner,
        )

    async def _abandon(self, error: BaseException) -> None:
        """Give the connection up (or roll back, when the server itself refused) and raise what our tree has for it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            healthy = isinstance(error, asyncpg.PostgresError) and await self._roll_back(connection)
            self._database._check_in(connection, healthy=healthy)
        try:
            await self._deadline.__aexit__(type(error), error, error.__traceback__)
        except TimeoutError:
            raise DatabaseTimeout(f"{self._purpose}: no answer within its deadline", reason="deadline") from None
        if isinstance(error, Exception):
            raise translate(error, self._purpose) from error

    async def _roll_back(self, connection: Connection) -> bool:
        try:
            async with asyncio.timeout(ROLLBACK_SECONDS):
                await connection.execute("ROLLBACK")
        except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        return True


class Savepoint:
    """A part of a transaction that may fail by itself."""

    def __init__(self, connection: Connection, name: str, purpose: str) -> None:
        self._connection = connection
        self._name = quote_identifier(name)
        self._purpose = purpose

    async def __aenter__(self) -> None:
        await self._connection.execute(f"SAVEPOINT {self._name}")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self._connection.execute(f"RELEASE SAVEPOINT {self._name}")
        elif isinstance(error, asyncpg.PostgresError):
            await self._connection.execute(f"ROLLBACK TO SAVEPOINT {self._name}")
            raise translate(error, self._purpose) from error


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
