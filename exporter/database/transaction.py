"""One transaction on one connection: its BEGIN with every limit, its deadline, and the translation of errors."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias, TypeVar

import asyncpg

from exporter.database.failures import translate
from exporter.database.statement import Statement, quote_identifier, quote_literal
from exporter.errors import DatabaseError, DatabaseTimeout, DatabaseUnavailable, StatementFailed

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Result = TypeVar("Result")
Sink: TypeAlias = Callable[[bytes], Coroutine[object, object, None]]

ROLLBACK_SECONDS = 1.0
PARAMETER_OR_COMMENT = re.compile(r"\$([1-9])|--[^\n]*")
QUOTE_TEXTS = "SELECT quote_literal($1::text[])"

# One message: BEGIN and every limit, so that a transaction costs four round trips. A limit that the role already
# carries is kept where it is lower. SET LOCAL (set_config's third argument) leaves nothing on a pooled connection.
# A client that freezes between the parts of a statement is not "idle in transaction": transaction_timeout ends that
# one, where the server knows it (17 and later).
# Compiling takes 0.1 to 0.2 s of a processor: what the planner believes about the length of a JSON array made it
# compile the question for the capabilities, which runs for 2 ms, on every new connection.
BEGIN = """\
BEGIN TRANSACTION ISOLATION LEVEL {isolation} {access};
SELECT set_config(name, CASE WHEN current_setting(name)::interval > interval '0'
                              AND current_setting(name)::interval < make_interval(secs => seconds)
                             THEN current_setting(name) ELSE (seconds * 1000)::int::text END, true)
  FROM (VALUES ('statement_timeout', {statement}), ('lock_timeout', {lock}),
               ('idle_in_transaction_session_timeout', {idle}),
               ('transaction_timeout', {whole})) AS wanted (name, seconds)
 WHERE current_setting(name, true) IS NOT NULL;
SELECT set_config('application_name', {application}, true), set_config('jit', 'off', true){planner}"""


def begin_text(
    *,
    isolation: str,
    read_only: bool,
    statement_seconds: float,
    lock_seconds: float,
    idle_seconds: float,
    application: str,
    planner: Mapping[str, str],
) -> str:
    """BEGIN with the transaction's limits and settings, as one message."""
    return BEGIN.format(
        isolation=isolation,
        # Never READ WRITE: that would override an operator's default_transaction_read_only.
        access="READ ONLY" if read_only else "",
        statement=statement_seconds,
        lock=lock_seconds,
        idle=idle_seconds,
        whole=idle_seconds + 1,
        application=quote_literal(application),
        planner="".join(
            f", set_config({quote_literal(name)}, {quote_literal(value)}, true)" for name, value in planner.items()
        ),
    )


class Transaction:
    """One explicit transaction. Every await on the network lies under one deadline, a second above the server's."""

    __slots__ = ("_deadline_at", "_purpose", "_schema", "connection", "ended", "timed_out")

    def __init__(self, connection: Connection, purpose: str, schema: str, deadline_at: float) -> None:
        self.connection = connection
        self._purpose = purpose
        self._schema = schema
        self._deadline_at = deadline_at
        self.ended = False
        self.timed_out = False

    async def fetch(self, statement: Statement, *arguments: object) -> list[asyncpg.Record]:
        """All rows of `statement`."""
        return await self._run(self.connection.fetch(self._text(statement), *arguments))

    async def execute(self, statement: Statement, *arguments: object) -> int:
        """Run `statement`; the number of rows that it touched."""
        status = await self._run(self.connection.execute(self._text(statement), *arguments))
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def copy(self, statement: Statement, sink: Sink, *arguments: float | Sequence[str]) -> None:
        """Run `statement` as COPY in binary form; `sink` is awaited with each piece as it arrives, in flat memory.

        COPY takes no parameters: `$1`, `$2` become literals, which for texts the server itself writes.
        """
        texts = [list(argument) for argument in arguments if not isinstance(argument, float | int)]
        quoted = iter([await self._run(self.connection.fetchval(QUOTE_TEXTS, each)) for each in texts])
        literals = [
            f"({argument!r}::float8)" if isinstance(argument, float | int) else f"({next(quoted)}::text[])"
            for argument in arguments
        ]
        # Without the comments: a literal in one of them would end it at its first line break.
        text = PARAMETER_OR_COMMENT.sub(
            lambda match: literals[int(match[1]) - 1] if match[1] else "", self._text(statement)
        )
        await self._run(self.connection.copy_from_query(text, output=sink, format="binary"))

    @asynccontextmanager
    async def savepoint(self, name: str) -> AsyncIterator[None]:
        """A part of the transaction that may fail by itself: what the server refuses inside is undone and raised."""
        quoted = quote_identifier(name)
        await self._run(self.connection.execute(f"SAVEPOINT {quoted}"))
        try:
            yield
        except Exception:
            if not self.connection.is_closed():
                await self._run(self.connection.execute(f"ROLLBACK TO SAVEPOINT {quoted}"))
            raise
        await self._run(self.connection.execute(f"RELEASE SAVEPOINT {quoted}"))

    async def begin(self, text: str) -> None:
        """Send BEGIN with the limits of the transaction."""
        await self._run(self.connection.execute(text))

    async def commit(self, *, read_only: bool) -> None:
        """COMMIT. An answer that was lost is an error that no retry may follow: the server may have committed."""
        try:
            status = await self._run(self.connection.execute("COMMIT"))
        except DatabaseUnavailable as error:
            if not read_only:
                error.retryable = False
            raise
        self.ended = True
        if status != "COMMIT":
            raise StatementFailed(f"{self._purpose}: the transaction was rolled back", reason="statement_error")

    async def roll_back(self) -> None:
        """ROLLBACK on a connection that still answers; one that does not stays un-ended, and is terminated."""
        if self.ended or self.connection.is_closed():
            return
        try:
            async with asyncio.timeout(ROLLBACK_SECONDS):
                await self._run(self.connection.execute("ROLLBACK"))
        except (TimeoutError, DatabaseError):
            return
        self.ended = True

    @asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """The transaction's one deadline, as `DatabaseTimeout`."""
        try:
            async with asyncio.timeout_at(self._deadline_at) as deadline:
                yield
        except TimeoutError:
            if not deadline.expired():
                raise
            self.timed_out = True
            self.connection.terminate()
            raise DatabaseTimeout(f"{self._purpose}: no answer within its deadline", reason="deadline") from None

    def _text(self, statement: Statement) -> str:
        return statement.render({"schema": self._schema})

    async def _run(self, answer: Awaitable[Result]) -> Result:
        try:
            return await answer
        except asyncio.CancelledError:
            # Before anything else awaits: the driver has just prepared a task that asks the server to cancel, over a
            # second connection which may hang. Terminated in the same step, the task never starts.
            self.connection.terminate()
            raise
        except Exception as error:
            raise translate(error, self._purpose, closed=self.connection.is_closed()) from error
