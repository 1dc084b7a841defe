"""`GET /api/openapi.json`: what this service answers to, as OpenAPI 3.1. Made of the table of operations, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from exporter import __version__
from exporter.web.keys import PREFIX
from exporter.web.openapi_operations import (
    GET_OPERATIONS,
    JSON,
    POST_OPERATIONS,
    PUT_OPERATIONS,
    Operation,
    Parameter,
)
from exporter.web.openapi_shapes import Error

OPERATIONS: Final[Mapping[str, Mapping[str, Operation]]] = {
    "get": GET_OPERATIONS,
    "post": POST_OPERATIONS,
    "put": PUT_OPERATIONS,
}
REFERENCE: Final = "#/components/schemas/{name}"
DESCRIPTION: Final = (
    "Every GET answers to HEAD too. A path that is not described is 404, a method that a path does not have 405, each "
    "with the error that every other refusal has; a request that is not HTTP gets a plain 400. Every path works with "
    "and without a slash at its end. Credentials are asked for where a web config file has users."
)
REASONS: Final[Mapping[int, str]] = {
    200: "The answer",
    400: "A field or parameter holds what it must not; the message names it",
    401: "Credentials are needed",
    403: "This is disabled",
    404: "There is nothing at this path",
    405: "This path does not answer to this method",
    413: "The body, or what was asked for, is too large",
    500: "The new configuration cannot be used; the message lists every problem",
    503: "The database is away, nothing was read yet, or there is too much to do",
}
# They belong to no operation.
WITHOUT_OPERATION: Final = {"NotFound": 404, "MethodNotAllowed": 405}


async def openapi(request: web.Request) -> web.Response:
    """The description, with the prefix that is in force."""
    return web.Response(body=document(request.app[PREFIX]), content_type=JSON)


OPENAPI_ROUTES: Final[dict[str, Handler]] = {"/api/openapi.json": openapi}


@cache
def document(prefix: str) -> bytes:
    """The description as JSON, for a service whose paths begin with `prefix` (empty: none)."""
    types = list(_types())
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    named = {repr(each): schema for each, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for method, operations in OPERATIONS.items():
        for path, operation in operations.items():
            paths.setdefault(path, {})[method] = _operation(method, path, operation, named)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "windmill-exporter", "version": __version__, "description": DESCRIPTION},
            "servers": [{"url": prefix or "/"}],
            "security": [{"basic": []}, {}],
            "paths": paths,
            "components": {
                "schemas": components,
                "responses": {name: _error(status, named) for name, status in WITHOUT_OPERATION.items()},
                "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
            },
        }
    )


def statuses(operation: Operation) -> list[int]:
    """Every status that an operation can answer with, but for a defect of ours."""
    found = {200, *operation.statuses}
    if not operation.is_open:
        found |= {401, 503}
    if operation.body is not None:
        found |= {400, 413}
    if operation.parameters and operation.can_be_refused:
        found.add(400)
    return sorted(found)


def _types() -> Iterator[Any]:
    yield Error
    for operations in OPERATIONS.values():
        for operation in operations.values():
            yield from (each for each in (operation.answer, operation.body, *operation.rows) if each is not None)


def _operation(method: str, path: str, operation: Operation, named: Mapping[str, Any]) -> dict[str, Any]:
    responses = {
        str(status): _success(operation, named) if status == HTTPStatus.OK else _error(status, named)
        for status in statuses(operation)
    }
    described: dict[str, Any] = {
        "operationId": "-".join([method, *path.strip("/").replace(".", "-").split("/")]).rstrip("-"),
        "summary": operation.summary,
        "responses": responses,
    }
    if operation.parameters:
        described["parameters"] = [_parameter(each) for each in operation.parameters]
    if operation.body is not None:
        described["requestBody"] = {"content": {JSON: {"schema": named[repr(operation.body)]}}}
    if operation.is_open:
        described["security"] = []
    return described


def _success(operation: Operation, named: Mapping[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {each: {"schema": {"type": "string"}} for each in operation.media_types}
    if operation.answer is not None:
        content[JSON] = {"schema": named[repr(operation.answer)]}
    if operation.rows:
        rows = [named[repr(each)] for each in operation.rows]
        content[JSON] = {"schema": {"type": "array", "items": rows[0] if len(rows) == 1 else {"anyOf": rows}}}
    return {"description": REASONS[200], "content": content}


def _error(status: int, named: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": REASONS[status], "content": {JSON: {"schema": named[repr(Error)]}}}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    described = {"name": parameter.name, "in": "query", "description": parameter.description}
    style = {} if parameter.explode is None else {"style": "form", "explode": parameter.explode}
    return {**described, "schema": dict(parameter.schema), **style}
