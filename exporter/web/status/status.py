"""`GET /`: the status page for people, a short JSON for programs. Always 200, at once, whatever the database does."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from time import monotonic, time

from aiohttp import hdrs, web

from exporter import __version__
from exporter.metrics.collect import Scope
from exporter.snapshot import Board
from exporter.web.answers import json_answer
from exporter.web.keys import PREFIX, ROUTES
from exporter.web.negotiation import accepts_gzip, accepts_html
from exporter.web.status.compose import compose, wanted_of_past
from exporter.web.status.html import document
from exporter.web.status.past import PastCache
from exporter.web.status.values import Clocks, Page

# The page loads a stylesheet, a script and an icon of our own and fetches itself; nothing else, and nothing inline.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
COMPRESSION_LEVEL = 1


class StatusPage:
    """Makes the page from the board, the service's limits and conditions (by key) and what is known of the past."""

    def __init__(
        self,
        board: Board,
        scope: Callable[[], Scope],
        conditions: Callable[[], Mapping[str, str]],
        past: PastCache,
        clocks: Callable[[], Clocks] = lambda: Clocks(monotonic(), time()),
    ) -> None:
        self._board = board
        self._scope = scope
        self._conditions = conditions
        self._past = past
        self._clocks = clocks

    async def page(self) -> Page:
        """The values of the page now."""
        scope = self._scope()
        past = await self._past.look(*wanted_of_past(self._board.current, scope, self._clocks()))
        return compose(self._board.current, scope, self._conditions(), past, self._clocks())


STATUS_PAGE = web.AppKey("status_page", StatusPage)


async def status(request: web.Request) -> web.Response:
    """HTML for clients that name it, else `{"status": "ok"}`."""
    if not accepts_html(",".join(request.headers.getall(hdrs.ACCEPT, ()))):
        return json_answer({"status": "ok", "version": __version__}, headers={hdrs.VARY: "Accept"})
    page = await request.app[STATUS_PAGE].page()
    body = document(page, request.app[PREFIX], frozenset(request.app[ROUTES].values())).encode()
    headers = {
        hdrs.CONTENT_TYPE: "text/html; charset=utf-8",
        hdrs.CONTENT_SECURITY_POLICY: POLICY,
        hdrs.VARY: "Accept, Accept-Encoding",
    }
    if accepts_gzip(",".join(request.headers.getall(hdrs.ACCEPT_ENCODING, ()))):
        headers[hdrs.CONTENT_ENCODING] = "gzip"
        body = gzip.compress(body, COMPRESSION_LEVEL, mtime=0)
    return web.Response(body=body, headers=headers)
