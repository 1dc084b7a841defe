"""`GET /api/openapi.json` describes every route there is, and nothing else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from aiohttp import ClientSession

from exporter import __version__
from exporter.config import WebConfig
from exporter.web import keys
from exporter.web.app import MAX_BODY_BYTES
from exporter.web.openapi import document
from exporter.web.security.access import OPEN_ROUTES, Access
from exporter.web.security.web_config import parse_web_config
from tests.web.certificates import USERS, sign_in
from tests.web.serving import Service, listening, plain_client

DESCRIPTION = json.loads(document(""))
METHODS = frozenset({"get", "head", "post", "put", "delete", "patch", "options", "trace"})
OPERATIONS = [
    (path, method, operation)
    for path, operations in DESCRIPTION["paths"].items()
    for method, operation in operations.items()
    if method in METHODS
]


def routes() -> set[tuple[str, str]]:
    """Every path and method of the application, but for the HEAD that comes with each GET."""
    found: set[tuple[str, str]] = set()
    app = Service().app()
    paths = app[keys.ROUTES]
    for resource in app.router.resources():
        methods = {route.method.lower() for route in resource}
        assert ("head" in methods) == ("get" in methods)
        found |= {(paths[resource], method) for method in methods - {"head"}}
    return found


def test_every_route_is_described_and_nothing_else() -> None:
    assert {(path, method) for path, method, _ in OPERATIONS} == routes()


def test_it_is_a_valid_openapi_document() -> None:
    schemathesis.openapi.from_dict(DESCRIPTION).validate()
    for name, schema in DESCRIPTION["components"]["schemas"].items():
        assert jsonschema_rs.meta.is_valid(schema), name
    identifiers = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(identifiers) == len(set(identifiers))


def test_only_the_health_paths_are_without_credentials() -> None:
    without = {path for path, _, operation in OPERATIONS if operation.get("security") == []}
    assert without == OPEN_ROUTES
    assert {path for path, _, operation in OPERATIONS if "401" not in operation["responses"]} == OPEN_ROUTES


def test_every_refusal_has_the_one_shape() -> None:
    refusals = [
        response["content"]["application/json"]["schema"]
        for _, _, operation in OPERATIONS
        for status, response in operation["responses"].items()
        if status != "200"
    ]
    refusals += [
        each["content"]["application/json"]["schema"] for each in DESCRIPTION["components"]["responses"].values()
    ]
    assert refusals.count({"$ref": "#/components/schemas/Error"}) == len(refusals) > 60
    assert set(DESCRIPTION["components"]["schemas"]["Error"]["required"]) == {"message", "error"}


@pytest.mark.parametrize("prefix", ["", "/exporter"])
async def test_it_is_served_with_the_prefix_in_force(prefix: str) -> None:
    service = Service(config=WebConfig(route_prefix=prefix))
    async with (
        listening(service.app()) as listener,
        plain_client(listener) as session,
        session.get(f"{prefix}/api/openapi.json") as response,
    ):
        assert (response.status, response.content_type) == (200, "application/json")
        served = await response.json()
    assert served["openapi"] == "3.1.0"
    assert served["info"]["version"] == __version__
    assert served["servers"] == [{"url": prefix or "/"}]
    assert served["paths"].keys() == DESCRIPTION["paths"].keys()


@pytest.fixture
async def guarded() -> AsyncIterator[ClientSession]:
    """A client of the application with users."""
    access = Access()
    access.apply(parse_web_config("web.yml", USERS.encode()), public_metrics=False)
    async with listening(Service(access=access).app()) as listener, plain_client(listener) as session:
        yield session
    access.close()


async def test_credentials_are_asked_for_where_it_says_so(guarded: ClientSession) -> None:
    for path, method, operation in OPERATIONS:
        async with guarded.request(method, path) as response:
            assert response.status == (200 if operation.get("security") == [] else 401), path
    async with guarded.get("/api/openapi.json", headers=sign_in()) as response:
        assert response.status == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "name"),
    [
        ("GET", "/no/such/path", 404, "NotFound"),
        ("DELETE", "/api/fairness", 405, "MethodNotAllowed"),
        ("POST", "/api/openapi.json", 405, "MethodNotAllowed"),
        ("GET", "/grafana/query", 405, "MethodNotAllowed"),
    ],
)
async def test_what_is_not_described_is_refused_as_it_says(
    client: ClientSession, method: str, path: str, status: int, name: str
) -> None:
    shape: dict[str, Any] = DESCRIPTION["components"]["responses"][name]["content"]["application/json"]["schema"]
    async with client.request(method, path) as response:
        assert response.status == status
        jsonschema_rs.validate({**shape, "components": DESCRIPTION["components"]}, await response.json())


@pytest.mark.parametrize("path", [path for path, method, _ in OPERATIONS if method == "post" and path != "/-/reload"])
async def test_a_body_that_is_too_large_is_refused_as_it_says(client: ClientSession, path: str) -> None:
    assert DESCRIPTION["paths"][path]["post"]["responses"].keys() == {"200", "400", "401", "413", "503"}
    async with client.post(path, data=BytesIO(b" " * (MAX_BODY_BYTES + 1))) as response:
        assert response.status == 413
        assert set(await response.json()) == {"message", "error"}


async def test_every_get_answers_to_head_without_a_body(client: ClientSession) -> None:
    for path in [path for path, method, _ in OPERATIONS if method == "get"]:
        async with client.get(path) as get, client.head(path) as head:
            assert (head.status, await head.read()) == (get.status, b""), path
            assert head.content_type == get.content_type
