"""Wires everything together; owns every task, and starts and stops them in one place."""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from exporter.conditions import Conditions
from exporter.config import Config
from exporter.database.capabilities import Requirement
from exporter.database.capability_check import CapabilityCheck
from exporter.database.connect import Connector
from exporter.database.database import Database, run_once_more
from exporter.database.target import Target
from exporter.errors import DatabaseError, DatabaseTimeout, DatabaseUnavailable, MissingCapability, StatementFailed
from exporter.fairness.events import EVENTS_REQUIREMENTS, Event, events
from exporter.fairness.refresh import Refresher
from exporter.fairness.requirements import requirements as fairness_requirements
from exporter.fairness.values import FairnessMode, RefreshOutcome, RefreshResult
from exporter.metrics.collect import Scope
from exporter.metrics.own import OwnMetrics
from exporter.metrics.page import MetricsPage
from exporter.queue.history import REQUIREMENTS as HISTORY_REQUIREMENTS
from exporter.queue.history import History
from exporter.queue.retention import Retention
from exporter.queue.sampler import Sampler
from exporter.queue.values import QueueMode, QueueOutcome
from exporter.snapshot import Board, CollectorStatus, Snapshot
from exporter.timer import Timer
from exporter.web.app import create_app
from exporter.web.health import not_ready_reason
from exporter.web.listen import Listener, parse_listen_address, start_listening
from exporter.web.status.past import PastCache, PastReader
from exporter.web.status.status import StatusPage

logger = logging.getLogger(__name__)

Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class Loop:
    """One collector as the service runs it: seconds until its next turn, and the turn itself."""

    name: str
    due_in: Callable[[], float]
    turn: Callable[[], Awaitable[None]]


class Service:
    """One replica of the exporter. `target` is asked for the connection settings whenever they may have changed."""

    def __init__(self, config: Config, target: Callable[[], Target]) -> None:
        self.config = config
        self.conditions = Conditions()
        self.replica = f"{socket.gethostname()}-{secrets.token_hex(3)}"
        connector = Connector(target, config.database)
        self._database = Database(connector, config.database)
        self._own = OwnMetrics(lambda: self._database.pool_connections)
        self._requirements: dict[str, tuple[Requirement, ...]] = {
            "history": HISTORY_REQUIREMENTS,
            "events": EVENTS_REQUIREMENTS,
        }
        self._loops = [*self._fairness_loops(), *self._queue_loops()]
        self._capabilities = CapabilityCheck(self._database, self._requirements, url_schema=lambda: connector.schema)
        self.board = Board(Snapshot(tuple(CollectorStatus(loop.name) for loop in self._loops)))
        self._history = History(self._database, require=lambda: self._capabilities.require("history"))
        self._past = PastCache(PastReader(self._history, self._events).read)
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []
        self._listener: Listener | None = None

    @property
    def urls(self) -> Sequence[str]:
        """Where the service can be reached, once it is started."""
        return self._listener.urls if self._listener else ()

    async def start(self) -> None:
        """Open the listener and start every loop. Raises `ConfigError` when the address cannot be used."""
        web = self.config.web
        app = create_app(
            board=self.board,
            page=MetricsPage(self.board, self._own, _scope(self.config)),
            own=self._own,
            config=web,
            not_ready=lambda: not_ready_reason(
                self.board.current, requires_database=web.ready_requires_database, stopping=self._stopping
            ),
            status_page=StatusPage(
                self.board, lambda: _scope(self.config), lambda: self.conditions.problems, self._past
            ),
        )
        self._listener = await start_listening(app, parse_listen_address(web.listen_address))
        self._tasks = [asyncio.create_task(_run(loop), name=loop.name) for loop in self._loops]
        logger.info("listening", extra={"url": self.urls[0], "replica": self.replica})

    async def run_until(self, stop: asyncio.Event) -> bool:
        """Wait for `stop`; False when a loop ended by itself, which is a defect."""
        stopped = asyncio.create_task(stop.wait(), name="stop")
        done, _ = await asyncio.wait({stopped, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        for task in done - {stopped}:
            logger.critical("loop %s ended", task.get_name(), exc_info=task.exception())
        return done == {stopped}

    async def stop(self) -> None:
        """Say that we are not ready, finish the answers in flight, end every loop and connection."""
        self._stopping = True
        if self._listener is not None:
            await self._listener.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._past.close()
        await self._history.close()
        self._database.close()
        logger.info("stopped")

    async def _events(self) -> tuple[Event, ...]:
        await self._capabilities.require("events")
        return await events(self._database)

    def _fairness_loops(self) -> list[Loop]:
        config = self.config.fairness
        if config.mode is FairnessMode.OFF:
            return []
        self._requirements["fairness"] = fairness_requirements(config)
        refresher = Refresher(
            self._database,
            config,
            replica=self.replica,
            conditions=self.conditions,
            require=lambda: self._capabilities.require("fairness"),
            monotonic=time.monotonic,
        )

        def accept(outcome: RefreshOutcome) -> None:
            self._own.record_refresh(outcome)
            if outcome.snapshot is not None:
                self.board.current = replace(self.board.current, fairness=outcome.snapshot)

        def failed(error: DatabaseError) -> None:
            result = RefreshResult.TIMEOUT if isinstance(error, DatabaseTimeout) else RefreshResult.ERROR
            self._own.record_refresh(RefreshOutcome(result))
            if isinstance(error, MissingCapability):
                self.board.current = replace(self.board.current, fairness=None)

        return [Loop("fairness", refresher.due_in, lambda: self._turn("fairness", refresher.tick, accept, failed))]

    def _queue_loops(self) -> list[Loop]:
        config = self.config.queue
        if config.mode is QueueMode.OFF:
            return []
        sampler = Sampler(self._database, config, self.replica, time.monotonic)
        self._requirements["queue"] = sampler.requirements

        def accept(outcome: QueueOutcome) -> None:
            self._own.record_queue(outcome)
            if outcome.snapshot is not None:
                self.board.current = replace(self.board.current, queue=outcome.snapshot)
            self._report_skipped(outcome.skipped_tags)

        def failed(error: DatabaseError) -> None:
            if isinstance(error, MissingCapability):
                self.board.current = replace(self.board.current, queue=None)

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
            await self._turn(name, lambda: run_once_more(self._database, prepared), accept, failed)

        return Loop(name, lambda: timer.due_in(time.monotonic()), turn)

    async def _turn(
        self,
        name: str,
        work: Callable[[], Awaitable[Outcome]],
        accept: Callable[[Outcome], None],
        failed: Callable[[DatabaseError], None],
    ) -> None:
        """One turn of a collector: its outcome or its failure, on the board, in the metrics and in the log."""
        begun = time.perf_counter()
        error: DatabaseError | None = None
        try:
            accept(await work())
        except DatabaseError as failure:
            error = failure
        except Exception as failure:
            logger.error("%s: unexpected error", name, exc_info=failure)  # noqa: TRY400 -- see above, and no traceback to users
            error = StatementFailed(f"{name}: an unexpected error, see the log", reason="statement_error")
        self._own.observe_collector(name, time.perf_counter() - begun, error)
        if error is None:
            self._succeeded(name)
        else:
            failed(error)
            self._failed(name, error)

    def _succeeded(self, name: str) -> None:
        self.conditions.clear(name)
        self.board.update_collector(CollectorStatus(name, success=True, last_success_epoch=time.time()))
        self.board.current = replace(self.board.current, database_up=True)

    def _failed(self, name: str, error: DatabaseError) -> None:
        if isinstance(error, MissingCapability):
            self._capabilities.invalidate()
        # What keeps us from connecting is logged by the connector, once for all collectors.
        if not isinstance(error, DatabaseUnavailable):
            self.conditions.raise_problem(name, str(error), kind=error.reason)
        unreachable = isinstance(error, DatabaseUnavailable) or error.reason == "deadline"
        status = self.board.current.collector(name) or CollectorStatus(name)
        self.board.update_collector(replace(status, success=False, problem=str(error), reason=error.reason))
        self.board.current = replace(self.board.current, database_up=not unreachable)

    def _report_skipped(self, tags: Sequence[str]) -> None:
        if tags:
            names = ", ".join(repr(tag[:40]) for tag in tags[:3])
            sentence = f"{len(tags)} tags have names too long for the table metrics and are not stored: {names}..."
            self.conditions.raise_problem("long_tags", sentence, kind=",".join(sorted(tags)))
        else:
            self.conditions.clear("long_tags")


async def serve(config: Config, target: Callable[[], Target]) -> int:
    """Run one replica until SIGTERM or SIGINT; the exit code."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, stop.set)
    service = Service(config, target)
    await service.start()
    try:
        good = await service.run_until(stop)
    finally:
        await service.stop()
    return 0 if good else 1


async def _run(loop: Loop) -> None:
    while True:
        await asyncio.sleep(loop.due_in())
        await loop.turn()


def _scope(config: Config) -> Scope:
    return Scope(
        fairness_mode=config.fairness.mode,
        max_workspaces=config.metrics.max_workspaces,
        max_tags=config.metrics.max_tags,
        cluster=config.metrics.cluster,
    )


def _log_deleted(rows: int) -> None:
    if rows:
        logger.info("expired samples deleted", extra={"rows": rows})


def _nothing(_error: DatabaseError) -> None:
    """Retention has no snapshot to drop."""
