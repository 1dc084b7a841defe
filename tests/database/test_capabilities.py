"""What a database lacks is found out under real roles, named with the object and the remedy, per collector."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from exporter.config import DatabaseConfig
from exporter.database.capabilities import Requirement
from exporter.database.capability_check import CapabilityCheck
from exporter.database.connect import Connector
from exporter.database.database import Connection, Database
from exporter.database.url import parse_url
from exporter.errors import DatabaseUnavailable, MissingCapability
from tests.database.scene import ALL, FAIRNESS, QUEUE, Scene
from tests.database.targets import MakeRole, open_database, quoted, target_at


async def test_exactly_the_declared_grants_and_policies_are_enough(scene: Scene) -> None:
    assert await scene.works() == list(ALL)
    assert scene.check.current is not None
    assert (scene.check.current.schema, scene.check.current.role) == ("public", scene.role)
    assert scene.check.current.complete


async def test_the_owner_needs_no_policy(database: Database, windmill: Connection) -> None:
    await windmill.execute(
        "CREATE SCHEMA ops; CREATE VIEW ops.fairness_settings AS SELECT name, value FROM global_settings"
    )
    check = CapabilityCheck(database, ALL)
    for collector in ALL:
        await check.require(collector)


OBJECTS = {
    "v2_job_completed": "fairness",
    "audit": "fairness",
    "audit_partitioned": "writing",
    "background_task_state": "writing",
    "v2_job_queue": "queue",
    "metrics": "queue",
}


@pytest.mark.parametrize(("table", "collector"), OBJECTS.items())
async def test_a_table_that_goes_fails_its_collector_alone_until_it_is_back(
    table: str, collector: str, scene: Scene
) -> None:
    """Field case F31."""
    await scene.run(f"ALTER TABLE {table} RENAME TO elsewhere")
    assert await scene.works() == [name for name in ALL if name != collector]
    missing = await scene.missing(collector)
    assert missing.reason == "missing_table"
    assert str(missing) == f"public.{table} does not exist: is this the database and the schema of Windmill?"
    await scene.run(f"ALTER TABLE elsewhere RENAME TO {table}")
    assert await scene.works() == list(ALL)


async def test_each_missing_column_is_named(scene: Scene) -> None:
    """Field case F31."""
    await scene.run("ALTER TABLE v2_job_queue RENAME suspend_until TO gone; ALTER TABLE metrics DROP COLUMN value")
    assert await scene.works() == ["fairness", "writing", "settings"]
    missing = await scene.missing("queue")
    assert missing.reason == "missing_column"
    assert str(missing) == (
        "column public.v2_job_queue.suspend_until does not exist (another version of Windmill?); "
        "column public.metrics.value does not exist (another version of Windmill?)"
    )


@pytest.mark.parametrize(
    ("revoke", "collector", "grant"),
    [
        (
            "SELECT (duration_ms) ON v2_job_completed",
            "fairness",
            'lacks privileges on public.v2_job_completed: GRANT SELECT ("duration_ms") ON "public"."v2_job_completed"',
        ),
        ("SELECT ON v2_job_queue", "queue", 'GRANT SELECT ("tag", "suspend_until") ON "public"."v2_job_queue"'),
        ("DELETE ON metrics", "queue", 'GRANT DELETE ON "public"."metrics"'),
        ("UPDATE ON background_task_state", "writing", 'GRANT UPDATE ("value") ON "public"."background_task_state"'),
        ("USAGE ON SEQUENCE audit_id_seq", "writing", 'GRANT USAGE ON SEQUENCE "public"."audit_id_seq"'),
        ("SELECT ON ops.fairness_settings", "settings", 'GRANT SELECT ("name", "value") ON "ops"."fairness_settings"'),
        ("USAGE ON SCHEMA ops", "settings", 'GRANT USAGE ON SCHEMA "ops"'),
    ],
)
async def test_a_revoked_privilege_is_named_with_the_grant_that_cures_it(
    revoke: str, collector: str, grant: str, scene: Scene
) -> None:
    """Field case F32: the cure is executed as it stands."""
    await scene.run(f"REVOKE {revoke} FROM ROLE")
    assert await scene.works() == [name for name in ALL if name != collector]
    missing = await scene.missing(collector)
    assert missing.reason == "missing_privilege"
    assert f"{grant} TO {quoted(scene.role)}" in str(missing)
    await scene.run(str(missing)[str(missing).index("GRANT") :])
    assert await scene.works() == list(ALL)


async def test_the_schema_of_the_url_is_known_to_the_very_first_question(
    windmill_url: str, windmill: Connection
) -> None:
    await windmill.execute("CREATE SCHEMA wm; CREATE TABLE wm.metrics (LIKE public.metrics)")
    url = f"{windmill_url}&options=-c%20search_path%3Dwm"
    connector = Connector(lambda: parse_url(url), DatabaseConfig())
    database = Database(connector, DatabaseConfig())
    check = CapabilityCheck(
        database, {"queue": (Requirement("metrics", select=("id",)),)}, url_schema=lambda: connector.schema
    )
    await check.require("queue")
    assert database.schema == "wm"
    database.close()


async def test_a_schema_that_is_configured_but_missing_is_named_with_the_connections_own(windmill_url: str) -> None:
    """Field case F04."""
    database = open_database(parse_url(windmill_url), DatabaseConfig(schema="wm"))
    check = CapabilityCheck(database, {"queue": QUEUE, "fairness": FAIRNESS})
    for collector in ("queue", "fairness"):
        with pytest.raises(MissingCapability) as caught:
            await check.require(collector)
        assert caught.value.reason == "missing_schema"
        assert str(caught.value) == (
            'schema "wm" does not exist in this database; the own schema of this connection is "public"'
        )
    database.close()


@pytest.mark.parametrize("configured", ["wm", ""])
async def test_the_schema_comes_from_the_configuration_or_the_url(
    configured: str, windmill_url: str, windmill: Connection
) -> None:
    """Field case F04: the decoy in public is never read."""
    await windmill.execute("CREATE SCHEMA wm; CREATE TABLE wm.metrics (LIKE public.metrics)")
    database = open_database(parse_url(windmill_url), DatabaseConfig(schema=configured))
    queue = (Requirement("metrics", select=("id",)),)
    check = CapabilityCheck(database, {"queue": queue}, url_schema=lambda: "nowhere" if configured else "wm")
    await check.require("queue")
    assert database.schema == "wm"
    database.close()


async def test_without_either_the_schema_is_the_connections_own(
    windmill_url: str, windmill: Connection, make_role: MakeRole
) -> None:
    role = await make_role("SUPERUSER")
    await windmill.execute('CREATE SCHEMA "w m"; ALTER SCHEMA public RENAME TO gone')
    await windmill.execute(f'ALTER ROLE {quoted(role)} SET search_path = missing, "w m"')
    database = open_database(target_at(windmill_url, user=role))
    check = CapabilityCheck(database, {"queue": QUEUE})
    with pytest.raises(MissingCapability, match=r"^w m\.v2_job_queue does not exist"):
        await check.require("queue")
    assert database.schema == "w m"
    database.close()


class CountingDatabase(Database):
    """Counts transactions."""

    transactions = 0

    async def _check_out(self) -> tuple[Connection, bool]:
        self.transactions += 1
        return await super()._check_out()


@pytest.fixture
async def counted(windmill_url: str, windmill: Connection) -> AsyncIterator[Scene]:
    """A scene as the tables' owner, without the view of settings, that counts how often it asks."""
    await windmill.execute(
        "CREATE SCHEMA ops; CREATE VIEW ops.fairness_settings AS SELECT name, value FROM global_settings"
    )
    config = DatabaseConfig()
    database = CountingDatabase(Connector(lambda: parse_url(windmill_url), config), config)
    yield Scene(windmill, "postgres", database)
    database.close()


def transactions(scene: Scene) -> int:
    assert isinstance(scene.database, CountingDatabase)
    return scene.database.transactions


async def test_it_is_asked_once_for_all_collectors_and_then_never_again(counted: Scene) -> None:
    await asyncio.gather(*(counted.check.require(name) for name in ALL))
    counted.clock.now += 1000
    await asyncio.gather(*(counted.check.require(name) for name in ALL))
    assert transactions(counted) == 1


async def test_it_is_asked_again_after_a_reconnect_and_after_an_error_that_says_so(counted: Scene) -> None:
    await counted.check.require("queue")
    counted.database.drop_idle()
    async with counted.database.transaction("other"):
        pass
    await counted.check.require("queue")
    await counted.check.require("queue")
    assert transactions(counted) == 3
    counted.check.invalidate()
    await counted.check.require("queue")
    assert transactions(counted) == 4


async def test_while_something_is_missing_it_is_asked_at_growing_pauses(counted: Scene) -> None:
    await counted.windmill.execute("ALTER TABLE metrics RENAME TO elsewhere")
    asked_at = []
    for second in range(60):
        before = transactions(counted)
        counted.clock.now = float(second)
        await counted.missing("queue")
        await counted.check.require("fairness")
        if transactions(counted) > before:
            asked_at.append(second)
    assert asked_at == [0, 1, 3, 7, 15, 31, 55]
    await counted.windmill.execute("ALTER TABLE elsewhere RENAME TO metrics")
    counted.clock.now = 79.0
    await counted.check.require("queue")


async def test_a_database_that_is_away_is_not_a_missing_capability(counted: Scene) -> None:
    counted.database.close()
    with pytest.raises(DatabaseUnavailable):
        await counted.check.require("queue")
