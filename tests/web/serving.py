"""The web application over a board that the test writes to."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import ClientSession, web

from exporter.config import DatabaseConfig, WebConfig
from exporter.database.database import Connection, Database
from exporter.errors import DatabaseUnavailable
from exporter.fairness.events import EventLog
from exporter.fairness.values import FairnessMode
from exporter.metrics.collect import Scope
from exporter.metrics.own import OwnMetrics
from exporter.metrics.page import MetricsPage
from exporter.queue.history import History
from exporter.readers import Readers
from exporter.snapshot import Board
from exporter.web.app import create_app
from exporter.web.keys import Reload
from exporter.web.listen import Listener, parse_listen_address, start_listening
from exporter.web.security.access import Access
from exporter.web.status.past import Past, PastCache
from exporter.web.status.status import StatusPage
from exporter.web.status.values import Clocks
from tests.metrics.scenes import MONOTONIC, NOW, full_snapshot, own_metrics


async def no_past(_previous: Past, _tags: Collection[str], _now_ms: int) -> Past:
    """Nothing is known of the past."""
    return Past()


async def no_database() -> Connection:
    """Connects to nothing."""
    raise DatabaseUnavailable("there is no database", reason="unreachable")


def readers_of(database: Database) -> Readers:
    """What the product reads from `database` on a request."""
    return Readers(History(database), EventLog(database))


@dataclass
class Service:
    """What the application is made of, to look at and to change."""

    board: Board = field(default_factory=lambda: Board(full_snapshot()))
    own: OwnMetrics = field(default_factory=own_metrics)
    config: WebConfig = field(default_factory=WebConfig)
    readers: Readers = field(default_factory=lambda: readers_of(Database(no_database, DatabaseConfig())))
    access: Access | None = None
    reload: Reload | None = None
    draw: Callable[[int], int] = random.randrange
    reason: str | None = None
    conditions: dict[str, str] = field(default_factory=dict)
    read: Callable[[Past, Collection[str], int], Awaitable[Past]] = no_past

    def app(self) -> web.Application:
        """The application; the clock of its page stands still."""
        page = MetricsPage(self.board, self.own, Scope(FairnessMode.ENFORCE), lambda: MONOTONIC)
        return create_app(
            board=self.board,
            page=page,
            own=self.own,
            config=self.config,
            readers=self.readers,
            not_ready=lambda: self.reason,
            status_page=StatusPage(
                self.board,
                lambda: Scope(FairnessMode.ENFORCE),
                lambda: self.conditions,
                PastCache(self.read),
                lambda: Clocks(MONOTONIC, NOW),
            ),
            access=self.access,
            reload_action=lambda: self.reload,
            draw=self.draw,
            monotonic=lambda: MONOTONIC,
        )


@asynccontextmanager
async def listening(app: web.Application, address: str = "127.0.0.1:0") -> AsyncIterator[Listener]:
    """`app` behind a real socket."""
    listener = await start_listening(app, parse_listen_address(address))
    try:
        yield listener
    finally:
        await listener.stop()


@asynccontextmanager
async def plain_client(listener: Listener) -> AsyncIterator[ClientSession]:
    """A client that adds no Accept-Encoding, leaves paths as they are and decompresses nothing."""
    async with ClientSession(
        f"{listener.urls[0]}/", skip_auto_headers=["Accept-Encoding", "Accept"], auto_decompress=False
    ) as session:
        yield session
