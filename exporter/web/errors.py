"""Whatever goes wrong in a request becomes one JSON answer and one log line; no client learns of the inside."""

from __future__ import annotations

import logging

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from exporter.errors import BadRequest, DatabaseError, ExporterError, StatementFailed, TooManyRows
from exporter.web.answers import error_answer

logger = logging.getLogger(__name__)

_KNOWN = {
    404: ("not_found", "There is nothing at this path."),
    405: ("method_not_allowed", "This path does not answer to this method."),
    413: ("too_large", "The request body is larger than 1 MiB."),
}


class NotReady(ExporterError):
    """There is no reading, or it is too old to be shown; the text says why."""


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn raised HTTP errors into our JSON shape, and everything unforeseen into a 500."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        _log(request, logging.INFO, error.status)
        code, message = _KNOWN.get(error.status, ("refused", f"The request was refused: {error.reason}."))
        allowed = {str(hdrs.ALLOW): error.headers[hdrs.ALLOW]} if hdrs.ALLOW in error.headers else None
        return error_answer(error.status, code, message, headers=allowed)
    except (BadRequest, TooManyRows, DatabaseError, NotReady) as error:
        return _answer(request, error)
    except Exception as error:  # noqa: BLE001  # the last stop: a fault in one handler must not show its inside
        _log(request, logging.ERROR, 500, error)
        return error_answer(500, "internal", "The exporter failed to answer; its log says why.")


def _answer(request: web.Request, error: BadRequest | TooManyRows | DatabaseError | NotReady) -> web.Response:
    """A sentence of ours, which is safe to show. Only a statement that the server refused may be a defect."""
    match error:
        case BadRequest():
            status, code = 400, "bad_request"
        case TooManyRows():
            status, code = 413, "too_many_rows"
        case DatabaseError():
            status, code = 503, error.reason
        case NotReady():
            status, code = 503, "not_ready"
    if isinstance(error, StatementFailed):
        _log(request, logging.WARNING, status, error)
    else:
        _log(request, logging.INFO, status)
    return error_answer(status, code, str(error))


def _log(request: web.Request, level: int, status: int, error: Exception | None = None) -> None:
    fields = {"method": request.method, "path": request.rel_url.raw_path[:200], "status": status}
    logger.log(level, "request failed", extra=fields, exc_info=error)
