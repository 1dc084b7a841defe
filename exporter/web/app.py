"""The web application: its routes, its headers, its measurements."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from time import perf_counter

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from aiohttp.web_urldispatcher import AbstractResource

from exporter.config import WebConfig
from exporter.metrics.own import OwnMetrics
from exporter.metrics.page import MetricsPage
from exporter.queue.known_tags import KnownTags
from exporter.readers import Readers
from exporter.snapshot import Board
from exporter.web import keys
from exporter.web.admission import admission
from exporter.web.errors import answer_errors
from exporter.web.fairness import fairness
from exporter.web.grafana.endpoints import GRAFANA_GET_ROUTES, GRAFANA_POST_ROUTES
from exporter.web.health import healthy, ready
from exporter.web.lifecycle import reload
from exporter.web.metrics import metrics
from exporter.web.openapi import OPENAPI_ROUTES
from exporter.web.paths import parse_route_prefix, path_pattern
from exporter.web.queue_api import QUEUE_ROUTES
from exporter.web.security.access import Access, ask_for_credentials
from exporter.web.status.assets import asset_routes
from exporter.web.status.status import STATUS_PAGE, StatusPage, status
from exporter.web.windmill_api import WINDMILL_ROUTES

MAX_BODY_BYTES = 1024**2
OTHER_ROUTES = "other"

GET_ROUTES: dict[str, Handler] = {
    "/": status,
    "/metrics": metrics,
    "/-/healthy": healthy,
    "/-/ready": ready,
    "/api/fairness": fairness,
    "/api/admission": admission,
    **OPENAPI_ROUTES,
    **WINDMILL_ROUTES,
    **QUEUE_ROUTES,
    **GRAFANA_GET_ROUTES,
    **asset_routes(),
}
POST_ROUTES: dict[str, Handler] = {**GRAFANA_POST_ROUTES}

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Server": "windmill-exporter",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def create_app(
    *,
    board: Board,
    page: MetricsPage,
    own: OwnMetrics,
    config: WebConfig,
    readers: Readers,
    not_ready: Callable[[], str | None],
    status_page: StatusPage,
    access: Access | None = None,
    reload_action: Callable[[], keys.Reload | None] = lambda: None,
    draw: Callable[[int], int] = random.randrange,
    monotonic: Callable[[], float] = time.monotonic,
) -> web.Application:
    """The application. `not_ready` says in one sentence why this replica is not ready, or None.

    `readers` is for what is not in memory. `access` holds the users (None: nobody is asked), `reload_action` gives what
    reloads the configuration (None while that is disabled), `draw(n)` a random integer in 0..n-1, `monotonic` the
    seconds by which snapshots age.
    Raises `ConfigError` for a route prefix that cannot be one.
    """
    prefix = parse_route_prefix(config.route_prefix)
    app = web.Application(middlewares=[measure, answer_errors, ask_for_credentials], client_max_size=MAX_BODY_BYTES)
    routes: dict[AbstractResource | None, str] = {}
    for path in GET_ROUTES | POST_ROUTES:
        resource = app.router.add_resource(path_pattern(prefix + path))
        if path in GET_ROUTES:
            resource.add_route(hdrs.METH_GET, GET_ROUTES[path])
            resource.add_route(hdrs.METH_HEAD, GET_ROUTES[path])
        if path in POST_ROUTES:
            resource.add_route(hdrs.METH_POST, POST_ROUTES[path])
        routes[resource] = path
    reloading = app.router.add_resource(path_pattern(f"{prefix}/-/reload"))
    reloading.add_route(hdrs.METH_POST, reload)
    reloading.add_route(hdrs.METH_PUT, reload)
    routes[reloading] = "/-/reload"
    app[keys.ACCESS] = access or Access()
    app[keys.BOARD] = board
    app[keys.DRAW] = draw
    app[keys.METRICS_PAGE] = page
    app[keys.OWN_METRICS] = own
    app[keys.READERS] = readers
    app[keys.KNOWN_TAGS] = KnownTags(readers.history.tags, monotonic)
    app[keys.HISTORY_DEADLINE_SECONDS] = config.history_deadline_seconds
    app[keys.MONOTONIC] = monotonic
    app[keys.NOT_READY] = not_ready
    app[STATUS_PAGE] = status_page
    app[keys.PREFIX] = prefix
    app[keys.RELOAD] = reload_action
    app[keys.ROUTES] = routes
    app.on_response_prepare.append(add_headers)
    return app


@web.middleware
async def measure(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Observe how long the answer took, by the route's own path and not by what the client sent."""
    began = perf_counter()
    response = await handler(request)
    route = request.app[keys.ROUTES].get(request.match_info.route.resource, OTHER_ROUTES)
    request.app[keys.OWN_METRICS].observe_request(route, response.status, perf_counter() - began)
    return response


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """The headers of every answer. A page that loads things has its own policy; a web config file wins."""
    policy = response.headers.get(hdrs.CONTENT_SECURITY_POLICY)
    response.headers.update(HEADERS)
    if policy is not None:
        response.headers[hdrs.CONTENT_SECURITY_POLICY] = policy
    response.headers.update(request.app[keys.ACCESS].headers)
