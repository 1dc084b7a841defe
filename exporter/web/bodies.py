"""The JSON body of a request: bounded in size (by the application), in time and in depth."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from aiohttp import web

from exporter.errors import BadRequest

DEADLINE_SECONDS: Final = 10.0


async def read_json(request: web.Request) -> object:
    """The decoded body; None for an empty one. Raises `BadRequest` for anything but JSON, NaN and Infinity included."""
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            body = await request.read()
    except TimeoutError:
        raise BadRequest(f"body: was not received within {DEADLINE_SECONDS:g} s", field="body") from None
    if not body.strip():
        return None
    try:
        return msgspec.json.decode(body)
    except RecursionError:
        raise BadRequest("body: is nested too deeply", field="body") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"body: expected JSON: {error}", field="body") from None
