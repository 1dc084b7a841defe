"""Who may ask for what. One middleware in front of every route, the unknown ones included, that closes by default."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from types import MappingProxyType

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from exporter.throttle import Throttle
from exporter.web import keys
from exporter.web.answers import error_answer
from exporter.web.security.credentials import Check, Credentials, TooManyChecks
from exporter.web.security.web_config import WebServerConfig

logger = logging.getLogger(__name__)

OPEN_ROUTES = frozenset({"/-/healthy", "/-/ready"})
METRICS_ROUTE = "/metrics"
CHALLENGE = MappingProxyType({str(hdrs.WWW_AUTHENTICATE): 'Basic realm="windmill-exporter", charset="UTF-8"'})
RETRY = MappingProxyType({str(hdrs.RETRY_AFTER): "5"})
# A single thread: guessing passwords must leave the other core, or half of the only one, to the real work.
CHECKING_THREADS = 1


class Access:
    """The rules in force: users, open routes and headers. Replaced while the service runs, the cache with them."""

    def __init__(self, check: Check | None = None, clock: Callable[[], float] = monotonic) -> None:
        self._check = check
        self._executor = ThreadPoolExecutor(CHECKING_THREADS, thread_name_prefix="passwords")
        self._users: Mapping[str, str] = {}
        self._refusals = Throttle(clock)
        self.credentials: Credentials | None = None
        self.open_routes = OPEN_ROUTES
        self.headers: Mapping[str, str] = {}

    def apply(self, config: WebServerConfig, *, public_metrics: bool) -> None:
        """Put new rules in force. Users that stay the same need no second check of their passwords."""
        if config.users != self._users:
            self._users = config.users
            self.credentials = Credentials(config.users, self._executor, self._check) if config.users else None
        self.open_routes = OPEN_ROUTES | {METRICS_ROUTE} if public_metrics else OPEN_ROUTES
        self.headers = config.headers

    def close(self) -> None:
        """Check no more passwords."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def log_refusal(self, remote: str | None) -> None:
        """Log wrong credentials, without the name: it may be a password in the wrong field."""
        left_out = self._refusals.passes()
        if left_out is not None:
            logger.warning("wrong user or password", extra={"remote": remote, "others_not_logged": left_out})


@web.middleware
async def ask_for_credentials(request: web.Request, handler: Handler) -> web.StreamResponse:
    """401 for whoever is not a user, where users are configured, whatever the path but the open ones."""
    access = request.app[keys.ACCESS]
    credentials = access.credentials
    route = request.app[keys.ROUTES].get(request.match_info.route.resource)
    if credentials is None or route in access.open_routes:
        return await handler(request)
    authorization = request.headers.get(hdrs.AUTHORIZATION)
    try:
        allowed = await credentials.allow(authorization)
    except TooManyChecks:
        return error_answer(503, "busy", "Too many passwords are being checked. Try again soon.", headers=RETRY)
    if allowed:
        return await handler(request)
    if authorization is not None:
        access.log_refusal(request.remote)
    return error_answer(401, "unauthorized", "A user name and a password are needed here.", headers=CHALLENGE)
