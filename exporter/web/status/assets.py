"""What the page's stylesheet, script and icon are served from: the package itself, read once."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

CONTENT_TYPES: Mapping[str, str] = MappingProxyType(
    {"status.css": "text/css", "status.js": "text/javascript", "icon.svg": "image/svg+xml"}
)


def asset_routes() -> Mapping[str, Handler]:
    """A handler for each file, by its path."""
    directory = files(__package__) / "assets"
    return {f"/assets/{name}": _serve((directory / name).read_bytes(), kind) for name, kind in CONTENT_TYPES.items()}


def _serve(body: bytes, content_type: str) -> Handler:
    async def serve(_request: web.Request) -> web.Response:
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: f"{content_type}; charset=utf-8"})

    return serve
