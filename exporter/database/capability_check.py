"""Asks the database once per connection generation what it offers, for all collectors with one statement."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence

import asyncpg
import msgspec

from exporter.database.backoff import Backoff
from exporter.database.capabilities import (
    Capabilities,
    Offer,
    Requirement,
    encode_requirements,
    problems_of,
)
from exporter.database.database import Database
from exporter.database.row_security import Policy
from exporter.database.statement import Statement
from exporter.errors import MissingCapability

ASK = Statement.load("exporter.database", "capabilities.sql")


class CapabilityCheck:
    """Knows which collectors can work, and why the others cannot; also finds out where Windmill's tables are.

    It asks again after a reconnect, after `invalidate`, and while anything is missing at growing pauses. The schema is
    the configured one, or the one that the URL names (`url_schema`), or the connection's own.
    """

    def __init__(
        self,
        database: Database,
        requirements: Mapping[str, Sequence[Requirement]],
        *,
        url_schema: Callable[[], str] = str,
        uniform: Callable[[], float] = random.random,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._requirements = {name: tuple(wanted) for name, wanted in requirements.items()}
        self._url_schema = url_schema
        self._backoff = Backoff(monotonic, uniform)
        self._lock = asyncio.Lock()
        self._generation = -1
        self.current: Capabilities | None = None

    async def require(self, collector: str) -> None:
        """Return when `collector` can work. Raises `MissingCapability` with all that is missing, or `DatabaseError`."""
        capabilities = await self.learn()
        if problems := capabilities.problems[collector]:
            text = "; ".join(dict.fromkeys(problem.sentence for problem in problems))
            raise MissingCapability(text, reason=problems[0].reason)

    async def learn(self) -> Capabilities:
        """What is known of all collectors, asked anew where that is due. Raises `DatabaseError`."""
        async with self._lock:
            capabilities = self.current
            if capabilities is None or self._is_outdated(capabilities):
                capabilities = self.current = await self._ask()
            return capabilities

    def invalidate(self) -> None:
        """Ask again at the next occasion: a statement met a missing table, column or privilege."""
        self._generation = -1

    def _is_outdated(self, capabilities: Capabilities) -> bool:
        if self._generation != self._database.generation:
            return True
        return not capabilities.complete and self._backoff.remaining_seconds == 0

    async def _ask(self) -> Capabilities:
        wanted = [requirement for requirements in self._requirements.values() for requirement in requirements]
        async with self._database.transaction("capabilities") as transaction:
            generation = self._database.generation
            configured = self._database.config.schema or self._url_schema()  # the URL was read by now
            rows = await transaction.fetch(ASK, encode_requirements(wanted), configured)
        offers = iter([_offer(row) for row in rows])
        problems = {
            name: tuple(problem for requirement in requirements for problem in problems_of(requirement, next(offers)))
            for name, requirements in self._requirements.items()
        }
        capabilities = Capabilities(
            schema=rows[0]["effective_schema"] if rows else configured or self._database.schema,
            role=rows[0]["role_name"] if rows else "",
            problems=problems,
        )
        self._generation = generation
        self._database.schema = capabilities.schema
        if capabilities.complete:
            self._backoff.succeeded()
        else:
            self._backoff.failed()
        return capabilities


def _offer(row: asyncpg.Record) -> Offer:
    denied = msgspec.json.decode(row["denied_columns"], type=list[tuple[str, str]])
    return Offer(
        schema=row["schema_name"],
        connection_schema=row["connection_schema"] or "",
        role=row["role_name"],
        schema_exists=row["schema_exists"],
        schema_usable=row["schema_usable"],
        exists=row["relation_exists"],
        absent_columns=tuple(row["absent_columns"]),
        denied_columns=tuple(denied),
        delete_denied=row["delete_denied"],
        usage_denied=row["usage_denied"],
        row_security=row["row_security"],
        policies=tuple(msgspec.json.decode(row["policies"], type=list[Policy])),
    )
