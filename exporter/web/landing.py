"""The landing page: what this is, how its collectors are doing, and where everything else is."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from aiohttp import hdrs, web

from exporter import __version__
from exporter.snapshot import CollectorStatus, Snapshot
from exporter.web.answers import json_answer
from exporter.web.keys import BOARD, PREFIX
from exporter.web.negotiation import accepts_html

LINKS = ("/metrics", "/-/healthy", "/-/ready")

PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Windmill exporter</title></head>
<body>
<h1>Windmill exporter {version}</h1>
<p>The database {reachable}.</p>
<ul>
{collectors}</ul>
<ul>
{links}</ul>
</body>
</html>
"""


async def landing(request: web.Request) -> web.Response:
    """HTML for people, a short JSON for others; always 200."""
    if not accepts_html(",".join(request.headers.getall(hdrs.ACCEPT, ()))):
        return json_answer({"status": "ok", "version": __version__}, headers={hdrs.VARY: "Accept"})
    page = landing_page(request.app[BOARD].current, request.app[PREFIX])
    return web.Response(
        body=page.encode(errors="replace"), content_type="text/html", charset="utf-8", headers={hdrs.VARY: "Accept"}
    )


def landing_page(snapshot: Snapshot, prefix: str) -> str:
    """The page as HTML; every string in it is escaped."""
    return PAGE.format(
        version=escape(__version__),
        reachable="can be reached" if snapshot.database_up else "cannot be reached",
        collectors=_list(escape(_sentence(status)) for status in snapshot.collectors),
        links=_list(f'<a href="{escape(prefix + path)}">{escape(prefix + path)}</a>' for path in LINKS),
    )


def _list(items: Iterable[str]) -> str:
    return "".join(f"<li>{item}</li>\n" for item in items)


def _sentence(status: CollectorStatus) -> str:
    if status.success:
        return f"{status.name}: working"
    return f"{status.name}: {status.problem or 'has not read anything yet'}"
