"""The metrics page over HTTP. It is always 200 and served from memory: a scraper's deadline never matters."""

from __future__ import annotations

from aiohttp import hdrs, web

from exporter.web.keys import METRICS_PAGE
from exporter.web.negotiation import accepts_gzip, choose_metrics_form


async def metrics(request: web.Request) -> web.Response:
    """Text or OpenMetrics, gzipped when asked; `name[]` (any number of times) keeps only families of these names."""
    form = choose_metrics_form(",".join(request.headers.getall(hdrs.ACCEPT, ())))
    gzipped = accepts_gzip(",".join(request.headers.getall(hdrs.ACCEPT_ENCODING, ())))
    names = frozenset(request.query.getall("name[]", ()))
    page = request.app[METRICS_PAGE]
    if names:
        body = page.selected(form.exposition, names, gzipped=gzipped)
    else:
        body = page.body(form.exposition, gzipped=gzipped)
    headers = {hdrs.CONTENT_TYPE: form.content_type, hdrs.VARY: "Accept, Accept-Encoding"}
    if gzipped:
        headers[hdrs.CONTENT_ENCODING] = "gzip"
    return web.Response(body=body, headers=headers)
