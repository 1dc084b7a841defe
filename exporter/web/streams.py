"""Large JSON answers, encoded in pieces: flat memory, and the event loop is free between two of them.

No transaction is open by then: a slow client holds no connection of the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from aiohttp import hdrs, web

from exporter.web.negotiation import accepts_gzip

BLOCK_BYTES: Final = 65_536
MIN_GZIP_BYTES: Final = 1_024


async def stream_json(request: web.Request, pieces: Iterable[bytes]) -> web.StreamResponse:
    """The JSON document that `pieces` make up, gzipped when asked; with its length where it fits into one block."""
    gzipped = accepts_gzip(",".join(request.headers.getall(hdrs.ACCEPT_ENCODING, ())))
    headers = {hdrs.CONTENT_TYPE: "application/json", hdrs.VARY: "Accept-Encoding"}
    blocks = _blocks(pieces)
    first, second = next(blocks, b""), next(blocks, None)
    response: web.StreamResponse
    if second is None:
        response = web.Response(body=first, headers=headers)
        if gzipped and len(first) >= MIN_GZIP_BYTES:
            response.enable_compression(web.ContentCoding.gzip)
        return response
    response = web.StreamResponse(headers=headers)
    if gzipped:
        response.enable_compression(web.ContentCoding.gzip)
    await response.prepare(request)
    if request.method != hdrs.METH_HEAD:
        for block in chain((first, second), blocks):
            await response.write(block)
            await asyncio.sleep(0)
    await response.write_eof()
    return response


def joined(items: Iterable[bytes]) -> Iterator[bytes]:
    """`items` as the elements of a JSON array."""
    separator = b"["
    for item in items:
        yield separator + item
        separator = b","
    yield b"]" if separator == b"," else b"[]"


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks of about 64 KiB."""
    block = bytearray()
    for piece in pieces:
        block += piece
        if len(block) >= BLOCK_BYTES:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)
