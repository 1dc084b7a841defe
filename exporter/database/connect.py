"""Opening connections: hosts in turn, one deadline each, TLS by the URL, a growing pause after failures.

Nothing is sent at start-up but user, database and encoding, and everything is handed to the driver explicitly, so that
poolers accept it and no PG* variable, password file or home directory takes part.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import time
from collections.abc import Callable
from dataclasses import replace

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from exporter.config import DatabaseConfig
from exporter.database.backoff import Backoff
from exporter.database.failures import translate_connecting
from exporter.database.target import Host, SessionAttributes, Target, TlsMode
from exporter.database.tls import attempts
from exporter.database.transaction import Connection
from exporter.errors import ConfigError, DatabaseUnavailable

logger = logging.getLogger(__name__)

Contexts = tuple[ssl.SSLContext | None, ...]

# What connecting raises: a name that cannot be a host name is a UnicodeError, a peer that is no PostgreSQL the rest.
CONNECTING_ERRORS = (OSError, UnicodeError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)

# The same answer from every host: trying the others would only repeat a wrong password.
FINAL_REASONS = frozenset({"authentication", "no_such_database"})

TLS_HINT = "The server may require TLS, which sslmode=disable rules out: write sslmode=require"

SERVER_STATE = """
SELECT pg_is_in_recovery() AS standby,
       pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on' AS read_only
"""


class Connector:
    """Opens one connection per call, to be given to `Database`. Raises `DatabaseUnavailable` only.

    `source` yields the target: read at the first attempt, and again when it could not be read, when a server refuses
    user or password, and after `reload`. One call connects at a time; the others then meet its success or its backoff.
    """

    def __init__(
        self,
        source: Callable[[], Target],
        config: DatabaseConfig,
        *,
        uniform: Callable[[], float] = random.random,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._config = config
        self._backoff = Backoff(monotonic, uniform)
        self._lock = asyncio.Lock()
        self._contexts: Contexts = ()
        self._last_good: Host | None = None
        self._failure: DatabaseUnavailable | None = None
        self._connected_before = False
        self.target: Target | None = None

    @property
    def schema(self) -> str:
        """The schema that the URL names; empty when it names none or was not read yet."""
        return self.target.schema if self.target else ""

    def reload(self) -> None:
        """Read the target anew for the next connection, at once."""
        self.target = None
        self._backoff.succeeded()

    async def __call__(self) -> Connection:
        """One new connection, or the reason why there is none."""
        async with self._lock:
            if self._failure and (seconds := self._backoff.remaining_seconds):
                text = f"{self._failure} (next attempt in {seconds:.0f} s)"
                raise DatabaseUnavailable(text, reason="backoff", sqlstate=self._failure.sqlstate)
            try:
                connection = await self._connect()
            except DatabaseUnavailable as failure:
                self._note_failure(failure)
                raise
            self._note_success()
            return connection

    async def _connect(self) -> Connection:
        target = self.target or self._read()
        try:
            return await self._try_hosts(target)
        except DatabaseUnavailable as failure:
            # A file of certificates may have been replaced as well; only a running connection proves them right.
            self._contexts = ()
            if failure.reason != "authentication" or (fresh := self._read()) == target:
                raise
            return await self._try_hosts(fresh)

    def _read(self) -> Target:
        try:
            target = self._source()
        except ConfigError as error:
            raise DatabaseUnavailable("; ".join(error.problems), reason="configuration") from error
        if target != self.target:
            for warning in target.warnings:
                logger.warning(warning)
            self._contexts = ()
        self.target = target
        return target

    async def _try_hosts(self, target: Target) -> Connection:
        if not self._contexts:
            try:
                # In a thread: the authorities of a system are hundreds of certificates.
                self._contexts = await asyncio.to_thread(attempts, target.tls)
            except ConfigError as error:
                raise DatabaseUnavailable("; ".join(error.problems), reason="tls") from error
        wanted = [target.session_attributes]
        if target.session_attributes is SessionAttributes.PREFER_STANDBY:
            wanted = [SessionAttributes.STANDBY, SessionAttributes.ANY]
        failures: list[DatabaseUnavailable] = []
        for attributes in wanted:
            for host in self._in_turn(target.hosts):
                try:
                    connection = await self._try_host(target, host, attributes)
                except DatabaseUnavailable as failure:
                    failures.append(failure)
                    if failure.reason in FINAL_REASONS:
                        break
                else:
                    self._last_good = host
                    return connection
        raise _joined(failures)

    def _in_turn(self, hosts: tuple[Host, ...]) -> tuple[Host, ...]:
        """The hosts, the one that last worked first: a dead host costs its deadline once, not per connection."""
        if self._last_good not in hosts:
            return hosts
        return (self._last_good, *(host for host in hosts if host != self._last_good))

    async def _try_host(self, target: Target, host: Host, attributes: SessionAttributes) -> Connection:
        place = str(replace(target, hosts=(host,)))
        seconds = target.connect_timeout_seconds or self._config.connect_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                connection = await self._open(target, host, place, seconds)
                await _check_attributes(connection, attributes, place)
        except TimeoutError as error:
            text = f"cannot connect to {place}: no answer within {seconds:g} s"
            raise DatabaseUnavailable(text, reason="unreachable") from error
        return connection

    async def _open(self, target: Target, host: Host, place: str, seconds: float) -> Connection:
        contexts: Contexts = (None,) if host.is_socket else self._contexts
        for number, context in enumerate(contexts, start=1):
            try:
                return await asyncpg.connect(
                    host=host.name,
                    port=host.port,
                    user=target.user,
                    password=target.password,
                    database=target.database,
                    ssl=context or False,
                    direct_tls=target.tls.direct and context is not None,
                    target_session_attrs=SessionAttribute.any,
                    krbsrvname="postgres",
                    gsslib="gssapi",
                    statement_cache_size=0,
                    timeout=seconds,
                )
            except CONNECTING_ERRORS as error:
                failure = translate_connecting(error, place)
                if number == len(contexts) or not _other_encryption_may_help(error, failure):
                    if target.tls.mode is TlsMode.DISABLE and (failure.reason == "tls" or failure.sqlstate == "28000"):
                        failure.args = (f"{failure}. {TLS_HINT}",)
                    raise failure from error
        raise AssertionError("there is always a last attempt")

    def _note_failure(self, failure: DatabaseUnavailable) -> None:
        if self._failure is None or self._failure.reason != failure.reason:
            logger.warning("no database connection: %s", failure, extra={"reason": failure.reason})
        self._failure = failure
        self._backoff.failed()

    def _note_success(self) -> None:
        if self._failure is not None:
            logger.info("connected to the database again: %s", self.target)
        elif not self._connected_before:
            logger.info("connected to the database: %s", self.target)
        self._connected_before = True
        self._failure = None
        self._backoff.succeeded()


def _other_encryption_may_help(error: Exception, failure: DatabaseUnavailable) -> bool:
    """Whether an `allow` or `prefer` goes on: not for a dead host, and never with a password that was refused."""
    if isinstance(error, asyncpg.PostgresError):
        return failure.reason == "tls" or failure.sqlstate == "28000"
    return isinstance(error, (ssl.SSLError, ConnectionError)) and not isinstance(error, ConnectionRefusedError)


async def _check_attributes(connection: Connection, wanted: SessionAttributes, place: str) -> None:
    if wanted is SessionAttributes.ANY:
        return
    try:
        # In a transaction: behind a pooler each message outside of one may go to another server.
        await connection.execute("BEGIN")
        [state] = await connection.fetch(SERVER_STATE)
        await connection.execute("COMMIT")
        fits = {
            SessionAttributes.READ_WRITE: not state["read_only"],
            SessionAttributes.READ_ONLY: state["read_only"],
            SessionAttributes.PRIMARY: not state["standby"],
            SessionAttributes.STANDBY: state["standby"],
        }[wanted]
        if not fits:
            text = f"{place} is not what target_session_attrs={wanted} asks for"
            raise DatabaseUnavailable(text, reason="no_writable_server")
    except CONNECTING_ERRORS as error:
        connection.terminate()
        raise translate_connecting(error, place) from error
    except BaseException:
        connection.terminate()
        raise


def _joined(failures: list[DatabaseUnavailable]) -> DatabaseUnavailable:
    """One error for all hosts, under the most telling reason: a server that answered tells more than a silent one."""
    telling = next((failure for failure in failures if failure.reason != "unreachable"), failures[0])
    texts = dict.fromkeys(str(failure) for failure in failures)
    return DatabaseUnavailable("; ".join(texts), reason=telling.reason, sqlstate=telling.sqlstate)
