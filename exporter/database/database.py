"""Explicit, limited transactions over a small pool of connections that we check out ourselves.

Why not the driver's pool and transaction blocks: when a deadline unwinds through them they send ROLLBACK or resets to
a server that may be frozen, and wait. Here a connection that was interrupted is terminated first and forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

from exporter.config import DatabaseConfig
from exporter.database.transaction import Connection, Result, Transaction, begin_text
from exporter.errors import DatabaseError, DatabaseUnavailable

Connect: TypeAlias = Callable[[], Awaitable[Connection]]

__all__ = ["Connect", "Connection", "Database", "Transaction", "run_once_more"]

OWN_DEADLINE_MARGIN_SECONDS = 1.0


class Database:
    """A pool of at most `pool_size` connections, opened on demand, and the transactions on them.

    `schema` is where Windmill's tables are; the capability check sets it once it has asked the database.
    """

    def __init__(self, connect: Connect, config: DatabaseConfig, application: str = "windmill-exporter") -> None:
        self._connect = connect
        self.config = config
        self._application = application
        self._slots = asyncio.Semaphore(config.pool_size)
        self._request_slots = asyncio.Semaphore(config.pool_size - 1)
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._outdated: set[Connection] = set()
        self._closed = False
        self.schema = config.schema or "public"
        self.generation = 0
        """Counts the connections opened so far: whatever was learnt about the database may be outdated after one."""

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
        for_request: bool = False,
    ) -> AbstractAsyncContextManager[Transaction]:
        """A transaction to be used with `async with`; `purpose` names it in errors and in `pg_stat_activity`.

        Leaving the block commits; an error rolls back; a deadline or a cancellation terminates the connection. What
        goes wrong with the database is raised as `DatabaseError`, from the statement itself already. Waiting for a
        connection takes `statement_seconds` at the most, everything from BEGIN to COMMIT one second more.
        `for_request` keeps one connection of the pool free for the loops.
        """
        seconds = statement_seconds or self.config.statement_timeout_seconds
        begin = begin_text(
            isolation=isolation,
            read_only=read_only,
            statement_seconds=seconds,
            lock_seconds=self.config.lock_timeout_seconds,
            idle_seconds=seconds + OWN_DEADLINE_MARGIN_SECONDS,
            application=f"{self._application} {purpose}",
            planner=planner or {},
        )
        return self._transaction(purpose, begin, seconds, read_only=read_only, for_request=for_request)

    async def ensure_connection(self, purpose: str) -> None:
        """Open a connection unless one is idle: for a caller whose own limit is shorter than connecting may take.

        A limit that ends an attempt to connect leaves no trace of it: a silent first host would be tried for ever.
        """
        async with self._slot(purpose, self.config.statement_timeout_seconds, for_request=False):
            connection, _ = await self._check_out()
            self._busy.discard(connection)
            self._idle.append(connection)

    def drop_idle(self) -> None:
        """Terminate the idle connections: after a failover they lead to the wrong server, or to none."""
        while self._idle:
            self._idle.pop().terminate()

    def renew(self) -> None:
        """Use none of the present connections again; those in use end with their transaction."""
        self.drop_idle()
        self._outdated |= self._busy

    def close(self) -> None:
        """Terminate every connection at once, those in use included."""
        self._closed = True
        self.drop_idle()
        for connection in self._busy:
            connection.terminate()

    @asynccontextmanager
    async def _transaction(
        self, purpose: str, begin: str, seconds: float, *, read_only: bool, for_request: bool
    ) -> AsyncIterator[Transaction]:
        async with self._slot(purpose, seconds, for_request=for_request):
            transaction = await self._begin(purpose, begin, seconds + OWN_DEADLINE_MARGIN_SECONDS)
            try:
                async with transaction.deadline():
                    yield transaction
                    await transaction.commit(read_only=read_only)
            except Exception:
                await transaction.roll_back()
                raise
            finally:
                self._give_back(transaction)

    async def _begin(self, purpose: str, begin: str, seconds: float) -> Transaction:
        """A transaction whose BEGIN was answered. An idle connection that turns out dead is replaced by a fresh one."""
        while True:
            connection, reused = await self._check_out()
            transaction = Transaction(connection, purpose, self.schema, asyncio.get_running_loop().time() + seconds)
            try:
                async with transaction.deadline():
                    await transaction.begin(begin)
            except BaseException as error:
                self._give_back(transaction)
                if not (reused and isinstance(error, DatabaseError) and error.retryable):
                    raise
                self.drop_idle()
            else:
                return transaction

    @asynccontextmanager
    async def _slot(self, purpose: str, seconds: float, *, for_request: bool) -> AsyncIterator[None]:
        wanted = [self._request_slots, self._slots] if for_request else [self._slots]
        held = []
        try:
            try:
                async with asyncio.timeout(seconds):
                    for slots in wanted:
                        await slots.acquire()
                        held.append(slots)
            except TimeoutError:
                text = f"{purpose}: no connection of the pool (database.pool_size) became free within {seconds:g} s"
                raise DatabaseUnavailable(text, reason="pool_exhausted") from None
            yield
        finally:
            for slots in held:
                slots.release()

    async def _check_out(self) -> tuple[Connection, bool]:
        """A connection, and whether it was used before."""
        self._check_open()
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                self._busy.add(connection)
                return connection, True
        connection = await self._connect()
        try:
            self._check_open()
        except DatabaseUnavailable:
            connection.terminate()
            raise
        self.generation += 1
        self._busy.add(connection)
        return connection, False

    def _check_open(self) -> None:
        if self._closed:
            raise DatabaseUnavailable("the database pool is closed", reason="closed")

    def _give_back(self, transaction: Transaction) -> None:
        connection = transaction.connection
        self._busy.discard(connection)
        outdated = connection in self._outdated
        self._outdated.discard(connection)
        if transaction.ended and not self._closed and not outdated and not connection.is_closed():
            self._idle.append(connection)
            return
        connection.terminate()
        if transaction.timed_out:
            self.drop_idle()  # the server or the way to it is frozen: the other connections would each cost a deadline


async def run_once_more(database: Database, operation: Callable[[], Awaitable[Result]]) -> Result:
    """`operation()`, and once more on fresh connections when a restart or a failover explains its error.

    `operation` must begin with its own read, so that the second run decides anew; single statements are never repeated.
    """
    try:
        return await operation()
    except DatabaseError as error:
        if not error.retryable:
            raise
        database.drop_idle()
        return await operation()
