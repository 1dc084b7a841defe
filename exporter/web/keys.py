"""What the application holds for its handlers, under typed keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.web_urldispatcher import AbstractResource

from exporter.metrics.own import OwnMetrics
from exporter.metrics.page import MetricsPage
from exporter.queue.known_tags import KnownTags
from exporter.readers import Readers
from exporter.snapshot import Board

if TYPE_CHECKING:
    from exporter.web.security.access import Access

Reload = Callable[[], Awaitable[None]]

ACCESS: web.AppKey[Access] = web.AppKey("access")
DRAW: web.AppKey[Callable[[int], int]] = web.AppKey("draw")
MONOTONIC: web.AppKey[Callable[[], float]] = web.AppKey("monotonic")
RELOAD: web.AppKey[Callable[[], Reload | None]] = web.AppKey("reload")
BOARD = web.AppKey("board", Board)
OWN_METRICS = web.AppKey("own_metrics", OwnMetrics)
METRICS_PAGE = web.AppKey("metrics_page", MetricsPage)
NOT_READY: web.AppKey[Callable[[], str | None]] = web.AppKey("not_ready")
PREFIX = web.AppKey("prefix", str)
ROUTES = web.AppKey("routes", Mapping[AbstractResource | None, str])
READERS = web.AppKey("readers", Readers)
KNOWN_TAGS = web.AppKey("known_tags", KnownTags)
HISTORY_DEADLINE_SECONDS = web.AppKey("history_deadline_seconds", float)
