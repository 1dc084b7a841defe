"""Wires everything together; owns every task, and starts, reloads and stops them in one place."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from exporter.collectors import Collectors, Loop
from exporter.conditions import Conditions
from exporter.config import Config
from exporter.config_loading import LoadedConfig
from exporter.database.connect import Connector
from exporter.database.database import Database
from exporter.database.target import Target
from exporter.errors import ConfigError, DatabaseUnavailable
from exporter.fairness.events import EventLog
from exporter.logs import configure_logging
from exporter.metrics.collect import Scope
from exporter.metrics.own import OwnMetrics
from exporter.metrics.page import MetricsPage
from exporter.queue.history import History
from exporter.readers import Readers
from exporter.reloading import plan_reload
from exporter.snapshot import Board, Snapshot
from exporter.web.app import create_app
from exporter.web.health import not_ready_reason
from exporter.web.listen import parse_listen_address
from exporter.web.security.access import Access
from exporter.web.security.web_files import WebFiles
from exporter.web.server import WATCH_SECONDS, WebServer
from exporter.web.status.past import PastCache, PastReader
from exporter.web.status.status import StatusPage

logger = logging.getLogger(__name__)

# What gives the database's connection settings whenever they may have changed.
Source = Callable[[], Target]
# Reads the configuration anew, and what gives the connection settings under it. Blocks; raises `ConfigError`.
Reread = Callable[[], tuple[LoadedConfig, Source]]


class Service:
    """One replica of the exporter. `target` is asked for the connection settings whenever they may have changed.

    `reread` is what a reload asks; without it only what files hold is read again: URL, users, certificates.
    """

    def __init__(
        self,
        config: Config,
        target: Source,
        reread: Reread | None = None,
        watch_seconds: float = WATCH_SECONDS,
    ) -> None:
        self.config = config
        self.conditions = Conditions()
        self.replica = f"{socket.gethostname()}-{secrets.token_hex(3)}"
        self._target = target
        self._reread = reread or (lambda: (LoadedConfig(self.config), self._target))
        self._connector = Connector(self._present_target, config.database)
        self._database = Database(self._connector, config.database)
        self._own = OwnMetrics(lambda: self._database.pool_connections)
        self._own.record_reload(successful=True, now_epoch=time.time())
        self.board = Board(Snapshot(replica=self.replica))
        self._page = MetricsPage(self.board, self._own, _scope(config))
        self._access = Access()
        self._server = WebServer(
            self._access, self.conditions, self._own.set_web_config_successful, time.monotonic, watch_seconds
        )
        self._stopping = False
        self._reloading = asyncio.Lock()
        self._reload_requested = asyncio.Event()
        self._collecting: list[asyncio.Task[None]] = []
        self._serving: list[asyncio.Task[None]] = []
        self._tasks_changed = asyncio.Event()
        self._collectors = self._make_collectors()
        self._readers = self._make_readers()
        self._past = PastCache(PastReader(self._readers.history, self._readers.events.latest).read)

    @property
    def urls(self) -> Sequence[str]:
        """Where the service can be reached, once it is started."""
        return self._server.urls

    async def start(self) -> None:
        """Open the listener and start every loop. Raises `ConfigError` when address or web config cannot be used."""
        web = self.config.web
        app = create_app(
            board=self.board,
            page=self._page,
            own=self._own,
            config=web,
            readers=self._readers,
            not_ready=self._not_ready,
            status_page=StatusPage(
                self.board, lambda: _scope(self.config), lambda: self.conditions.problems, self._past
            ),
            access=self._access,
            reload_action=lambda: self.reload if self.config.web.enable_lifecycle else None,
        )
        address = parse_listen_address(web.listen_address)
        await self._server.start(app, address, WebFiles(web.config.file), public_metrics=web.public_metrics)
        self._serving = [
            asyncio.create_task(_run(Loop("web_files", self._server.due_in, self._server.watch)), name="web_files"),
            asyncio.create_task(self._reload_when_requested(), name="reload"),
        ]
        self._collecting = _start(self._collectors.loops)
        logger.info("listening", extra={"url": self.urls[0], "replica": self.replica})

    async def run_until(self, stop: asyncio.Event) -> bool:
        """Wait for `stop`; False when a loop ended by itself, which is a defect."""
        stopped = asyncio.create_task(stop.wait(), name="stop")
        changed = asyncio.create_task(self._tasks_changed.wait(), name="tasks changed")
        try:
            while True:
                own = {*self._serving, *self._collecting}
                done, _ = await asyncio.wait({stopped, changed, *own}, return_when=asyncio.FIRST_COMPLETED)
                # A reload has cancelled those that are no longer ours.
                ended = done & {*self._serving, *self._collecting}
                for task in ended:
                    logger.critical("loop %s ended", task.get_name(), exc_info=task.exception())
                if ended or stopped in done:
                    return not ended
                self._tasks_changed.clear()
                if changed in done:
                    changed = asyncio.create_task(self._tasks_changed.wait(), name="tasks changed")
        finally:
            stopped.cancel()
            changed.cancel()

    def request_reload(self) -> None:
        """Reload soon; what comes of it is in the log and in the metrics."""
        self._reload_requested.set()

    async def reload(self) -> None:
        """Read the configuration, the URL's file and the web config file anew, and put in force what can be.

        Raises `ConfigError` with every problem; everything stays as it was then.
        """
        async with self._reloading:
            try:
                loaded, target = await asyncio.to_thread(self._reread)
                moved = await asyncio.to_thread(_leads_elsewhere, target, self._connector.target)
                web = loaded.config.web
                files = WebFiles(web.config.file)
                settings = await asyncio.to_thread(files.load)
                await self._server.adopt(files, settings, public_metrics=web.public_metrics)
            except ConfigError as error:
                self._own.record_reload(successful=False, now_epoch=time.time())
                logger.error("reload failed, the old configuration stays: %s", "; ".join(error.problems))  # noqa: TRY400 -- no traceback: the sentence says what to do
                raise
            plan = plan_reload(self.config, loaded.config)
            if self.config.log != plan.config.log:
                configure_logging(plan.config.log)
            self.config, self._target = plan.config, target
            self._page.set_scope(_scope(plan.config))
            self._connector.reload()
            self._database.renew()
            if plan.changes_collectors or moved:
                await self._replace_collectors(forget=moved)
            self._own.record_reload(successful=True, now_epoch=time.time())
            for warning in loaded.warnings:
                logger.warning(warning)
            logger.info("configuration reloaded", extra={"changed": ", ".join(plan.applied) or "nothing"})
            if plan.needs_restart:
                logger.warning("changed, but needs a restart: %s", ", ".join(plan.needs_restart))

    async def stop(self) -> None:
        """Say that we are not ready, finish the answers in flight, end every loop and connection."""
        self._stopping = True
        await self._server.stop()
        await self._past.close()
        await self._readers.close()
        await _end([*self._serving, *self._collecting])
        self._database.close()
        logger.info("stopped")

    def _present_target(self) -> Target:
        return self._target()

    def _not_ready(self) -> str | None:
        requires_database = self.config.web.ready_requires_database
        return not_ready_reason(self.board.current, requires_database=requires_database, stopping=self._stopping)

    def _make_collectors(self) -> Collectors:
        collectors = Collectors(
            self.config,
            self._database,
            replica=self.replica,
            url_schema=lambda: self._connector.schema,
            board=self.board,
            own=self._own,
            conditions=self.conditions,
        )
        collectors.take_over()
        return collectors

    def _make_readers(self) -> Readers:
        """They ask for what they need through whatever collectors are in force."""
        return Readers(
            History(
                self._database,
                self.config.web.history_deadline_seconds,
                require=lambda: self._collectors.require("history"),
            ),
            EventLog(self._database, lambda: self._collectors.require("events")),
        )

    async def _replace_collectors(self, *, forget: bool) -> None:
        """A turn that is under way is broken off, as at the end: its connection goes, and nothing half-done stays.

        `forget`: what was read is of another database.
        """
        old, self._collecting = self._collecting, []
        await _end(old)
        if forget:
            self.board.current = replace(self.board.current, fairness=None, queue=None)
        self._collectors = self._make_collectors()
        self._collecting = _start(self._collectors.loops)
        self._tasks_changed.set()

    async def _reload_when_requested(self) -> None:
        while True:
            await self._reload_requested.wait()
            self._reload_requested.clear()
            with contextlib.suppress(ConfigError):
                await self.reload()


def _leads_elsewhere(source: Source, present: Target | None) -> bool:
    """Whether the source names another database than `present`. Raises `ConfigError` when it names none at all.

    A file of the URL that is not there is waited for, as at the start.
    """
    try:
        target = source()
    except DatabaseUnavailable:
        return False
    return present is not None and (target.hosts, target.database) != (present.hosts, present.database)


async def _run(loop: Loop) -> None:
    while True:
        await asyncio.sleep(loop.due_in())
        await loop.turn()


def _start(loops: Iterable[Loop]) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(_run(loop), name=loop.name) for loop in loops]


async def _end(tasks: Iterable[asyncio.Task[None]]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _scope(config: Config) -> Scope:
    return Scope(
        fairness_mode=config.fairness.mode,
        max_workspaces=config.metrics.max_workspaces,
        max_tags=config.metrics.max_tags,
        cluster=config.metrics.cluster,
    )
