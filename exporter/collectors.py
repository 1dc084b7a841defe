"""The collectors of one configuration: when each is due, what one turn does, and what comes of it.

A reload makes new ones; the board, the metrics and the conditions that they write to go on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from exporter.conditions import Conditions
from exporter.config import Config
from exporter.database.capabilities import Requirement
from exporter.database.capability_check import CapabilityCheck
from exporter.database.database import Database, run_once_more
from exporter.errors import DatabaseError, DatabaseTimeout, DatabaseUnavailable, MissingCapability, StatementFailed
from exporter.fairness.refresh import Refresher
from exporter.fairness.requirements import requirements as fairness_requirements
from exporter.fairness.values import FairnessMode, RefreshOutcome, RefreshResult
from exporter.metrics.own import OwnMetrics
from exporter.queue.retention import Retention
from exporter.queue.sampler import Sampler
from exporter.queue.values import QueueMode, QueueOutcome
from exporter.readers import READER_REQUIREMENTS
from exporter.snapshot import Board, CollectorStatus
from exporter.timer import Timer

logger = logging.getLogger(__name__)

Outcome = TypeVar("Outcome")

# A collector that rarely has a turn is not red for its whole interval after what was missing is there.
RETRY_SECONDS = 30.0

# Why a collector has no connection although connecting works: nobody else says so.
OWN_REASONS = frozenset({"connection_lost", "pool_exhausted"})


@dataclass(frozen=True, slots=True)
class Loop:
    """What the service runs over and over: seconds until the next turn, and the turn itself."""

    name: str
    due_in: Callable[[], float]
    turn: Callable[[], Awaitable[object]]


class Collectors:
    """`loops` are those that `config` asks for. `url_schema` gives the schema that the database's URL names."""

    def __init__(
        self,
        config: Config,
        database: Database,
        *,
        replica: str,
        url_schema: Callable[[], str],
        board: Board,
        own: OwnMetrics,
        conditions: Conditions,
    ) -> None:
        self._config = config
        self._database = database
        self._replica = replica
        self._board = board
        self._own = own
        self._conditions = conditions
        self._requirements: dict[str, tuple[Requirement, ...]] = dict(READER_REQUIREMENTS)
        self.loops = (*self._fairness_loops(), *self._queue_loops())
        self._capabilities = CapabilityCheck(database, self._requirements, url_schema=url_schema)

    async def require(self, name: str) -> None:
        """Return when the collector or reader `name` can work. Raises `DatabaseError` with all that is missing."""
        await self._capabilities.require(name)

    def take_over(self) -> None:
        """Show these collectors on the board, each with what is known of it, and nothing of those that are gone."""
        current = self._board.current
        names = [loop.name for loop in self.loops]
        for status in current.collectors:
            if status.name not in names:
                self._conditions.clear(status.name)
        fairness = current.fairness if "fairness" in names else None
        self._board.current = replace(
            current,
            collectors=tuple(current.collector(name) or CollectorStatus(name) for name in names),
            # The new mode counts at once: nobody is held back for a cycle after enforcing was switched off.
            fairness=replace(fairness, mode=self._config.fairness.mode) if fairness else None,
            refresh=current.refresh if "fairness" in names else None,
            queue=current.queue if "queue" in names else None,
        )

    def _fairness_loops(self) -> list[Loop]:
        config = self._config.fairness
        if config.mode is FairnessMode.OFF:
            return []
        self._requirements["fairness"] = fairness_requirements(config)
        refresher = Refresher(
            self._database,
            config,
            replica=self._replica,
            conditions=self._conditions,
            require=lambda: self._capabilities.require("fairness"),
            require_audit=lambda: self._capabilities.require("events"),
            monotonic=time.monotonic,
        )

        def accept(outcome: RefreshOutcome) -> None:
            self._own.record_refresh(outcome)
            self._board.current = replace(self._board.current, refresh=outcome.result)
            if outcome.snapshot is not None:
                self._board.current = replace(self._board.current, fairness=outcome.snapshot)

        def failed(error: DatabaseError) -> None:
            result = RefreshResult.TIMEOUT if isinstance(error, DatabaseTimeout) else RefreshResult.ERROR
            self._own.record_refresh(RefreshOutcome(result))
            self._board.current = replace(self._board.current, refresh=result)
            if isinstance(error, MissingCapability):
                self._board.current = replace(self._board.current, fairness=None)

        return [Loop("fairness", refresher.due_in, lambda: self._turn("fairness", refresher.tick, accept, failed))]

    def _queue_loops(self) -> list[Loop]:
        config = self._config.queue
        if config.mode is QueueMode.OFF:
            return []
        sampler = Sampler(self._database, config, self._replica, time.monotonic)
        self._requirements["queue"] = sampler.requirements

        def accept(outcome: QueueOutcome) -> None:
            self._own.record_queue(outcome)
            if outcome.snapshot is not None:
                self._board.current = replace(self._board.current, queue=outcome.snapshot)
            self._report_skipped(outcome.skipped_tags)

        def failed(error: DatabaseError) -> None:
            if isinstance(error, MissingCapability):
                self._board.current = replace(self._board.current, queue=None)

        loops = [self._timed("queue", sampler.interval_seconds, sampler.tick, accept, failed)]
        if config.mode is QueueMode.SAMPLE:
            retention = Retention(self._database, config)
            self._requirements["retention"] = retention.requirements
            loops.append(self._timed("retention", retention.interval_seconds, retention.tick, _log_deleted, _nothing))
        return loops

    def _timed(
        self,
        name: str,
        interval_seconds: float,
        tick: Callable[[], Awaitable[Outcome]],
        accept: Callable[[Outcome], None],
        failed: Callable[[DatabaseError], None],
    ) -> Loop:
        """A loop at a fixed interval, its capabilities checked and its tick retried once after a failover."""
        timer = Timer(interval_seconds)

        async def prepared() -> Outcome:
            await self._capabilities.require(name)
            return await tick()

        async def turn() -> None:
            timer.begin(time.monotonic())
            if not await self._turn(name, lambda: run_once_more(self._database, prepared), accept, failed):
                timer.hasten(time.monotonic() + RETRY_SECONDS)

        return Loop(name, lambda: timer.due_in(time.monotonic()), turn)

    async def _turn(
        self,
        name: str,
        work: Callable[[], Awaitable[Outcome]],
        accept: Callable[[Outcome], None],
        failed: Callable[[DatabaseError], None],
    ) -> bool:
        """One turn of a collector: its outcome or its failure, on the board, in the metrics and in the log."""
        begun = time.perf_counter()
        error: DatabaseError | None = None
        cause: Exception | None = None
        try:
            accept(await work())
        except MissingCapability as failure:
            error = await self._explained(name, failure)
        except DatabaseError as failure:
            error = failure
        except Exception as failure:  # noqa: BLE001 -- a fault in one collector must not end the others
            error = StatementFailed(f"{name}: an unexpected error, see the log", reason="statement_error")
            cause = failure
        self._own.observe_collector(name, time.perf_counter() - begun, error)
        if error is None:
            self._succeeded(name)
        else:
            failed(error)
            self._failed(name, error, cause)
        return error is None

    def _succeeded(self, name: str) -> None:
        self._conditions.clear(name)
        self._board.update_collector(CollectorStatus(name, success=True, last_success_epoch=time.time()))
        self._board.current = replace(self._board.current, database_up=True)

    async def _explained(self, name: str, error: MissingCapability) -> MissingCapability:
        """What a statement met, in the words of the check: it names everything that is missing, and what to run."""
        if error.sqlstate is None:
            return error
        self._capabilities.invalidate()
        try:
            await self._capabilities.require(name)
        except MissingCapability as explained:
            return explained
        except DatabaseError:
            pass
        return error

    def _failed(self, name: str, error: DatabaseError, cause: Exception | None) -> None:
        # What keeps us from connecting is logged by the connector, once for all collectors.
        if not isinstance(error, DatabaseUnavailable) or error.reason in OWN_REASONS:
            kind = str(error) if isinstance(error, MissingCapability) else error.reason
            self._conditions.raise_problem(name, str(error), kind=type(cause).__name__ if cause else kind, cause=cause)
        unavailable = isinstance(error, DatabaseUnavailable) and error.reason != "pool_exhausted"
        unreachable = unavailable or error.reason == "deadline"
        status = self._board.current.collector(name) or CollectorStatus(name)
        self._board.update_collector(replace(status, success=False, problem=str(error), reason=error.reason))
        self._board.current = replace(self._board.current, database_up=not unreachable)

    def _report_skipped(self, tags: Sequence[str] | None) -> None:
        if tags is None:
            return
        if tags:
            names = ", ".join(repr(tag[:40]) for tag in tags[:3])
            sentence = f"{len(tags)} tags have names too long for the table metrics and are not stored: {names}..."
            self._conditions.raise_problem("long_tags", sentence, kind=",".join(sorted(tags)))
        else:
            self._conditions.clear("long_tags")


def _log_deleted(rows: int) -> None:
    if rows:
        logger.info("expired samples deleted", extra={"rows": rows})


def _nothing(_error: DatabaseError) -> None:
    """Retention has no snapshot to drop."""
