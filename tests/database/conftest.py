"""Fixtures of the database tests: a misbehaving network, a real pooler, roles that go with the test."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from exporter.database.database import Connection, Database
from exporter.demo.postgres import EmbeddedPostgres
from tests.database.pooler import pgbouncer
from tests.database.proxy import TcpProxy
from tests.database.scene import GRANTS, Scene
from tests.database.targets import QUICK, MakeRole, open_database, quoted, target_at

_role_numbers = itertools.count()


@pytest.fixture
async def proxy(template_loaded: EmbeddedPostgres) -> AsyncIterator[TcpProxy]:
    """A proxy in front of the test server."""
    async with TcpProxy(template_loaded.port) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def pooler_port(template_loaded: EmbeddedPostgres) -> Iterator[int]:
    """Port of a PgBouncer in transaction mode with one server connection per database."""
    with pgbouncer(template_loaded.port) as port:
        yield port


@pytest.fixture
async def make_role(windmill: Connection) -> AsyncIterator[MakeRole]:
    """Creates login roles in the test's database: `await make_role("CONNECTION LIMIT 2")` yields the name."""
    names: list[str] = []

    async def make(options: str = "") -> str:
        name = f'role "{next(_role_numbers)}'  # hostile on purpose: a space and a quote
        await windmill.execute(f"CREATE ROLE {quoted(name)} LOGIN {options}")
        names.append(name)
        return name

    yield make
    for name in names:
        await windmill.execute(f"DROP OWNED BY {quoted(name)}")
        await windmill.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = $1::text::name", name
        )
        await windmill.execute(f"DROP ROLE {quoted(name)}")


@pytest.fixture
async def scene(windmill_url: str, windmill: Connection, make_role: MakeRole) -> AsyncIterator[Scene]:
    """A role with exactly the declared grants, and a check that runs as that role."""
    role = await make_role()
    database = open_database(target_at(windmill_url, user=role))
    scene = Scene(windmill, role, database)
    await scene.run(GRANTS)
    yield scene
    database.close()


@pytest.fixture
def through_proxy(windmill_url: str, proxy: TcpProxy) -> Iterator[Database]:
    """The product's pool, with short limits, over the proxy."""
    database = open_database(target_at(windmill_url, proxy.port), QUICK)
    yield database
    database.close()
