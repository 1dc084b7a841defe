"""JSON answers, and the one shape of every error."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from aiohttp import web


def json_answer(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """`value` as JSON."""
    return web.Response(
        body=msgspec.json.encode(value), status=status, content_type="application/json", headers=headers
    )


def error_answer(status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None) -> web.Response:
    """An error: `code` is for programs, `message` one sentence for people."""
    body = {"message": message, "error": {"code": code, "message": message}}
    return json_answer(body, status=status, headers=headers)
