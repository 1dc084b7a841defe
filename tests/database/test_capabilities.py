"""What a database lacks is found out under real roles, named with the object and the remedy, per collector."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from exporter.config import DatabaseConfig
from exporter.database.capabilities import Requirement
from exporter.database.capability_check import CapabilityCheck
from exporter.database.connect import Connector
from exporter.database.database import Connection, Database
from exporter.database.statement import Statement
from exporter.database.url import parse_url
from exporter.errors import DatabaseUnavailable, MissingCapability
from tests.database.conftest import MakeRole, open_database, quoted, target_at

OPERATIONS = ("workspace_fairness.capped", "workspace_fairness.uncapped")
FAIRNESS = (
    Requirement("v2_job", select=("id", "workspace_id", "kind")),
    Requirement("v2_job_completed", select=("id", "completed_at", "duration_ms")),
    Requirement("audit", select=("operation", "resource"), operations=OPERATIONS),
)
WRITING = (
    Requirement(
        "audit_partitioned", select=("operation",), insert=("workspace_id", "operation"), operations=OPERATIONS
    ),
    Requirement("audit_id_seq", usage=True),
    Requirement("background_task_state", select=("name", "value"), insert=("name", "value"), update=("value",)),
)
QUEUE = (
    Requirement("v2_job_queue", select=("tag", "suspend_until")),
    Requirement("metrics", select=("id", "value"), delete=True),
)
SETTINGS = (Requirement("ops.fairness_settings", select=("name", "value")),)
ALL = {"fairness": FAIRNESS, "writing": WRITING, "queue": QUEUE, "settings": SETTINGS}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Scene:
    """A role that is granted exactly what the collectors need, and a check that runs as that role."""

    windmill: Connection
    role: str
    database: Database
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.check = CapabilityCheck(self.database, ALL, uniform=lambda: 0.0, monotonic=self.clock)

    async def run(self, sql: str) -> None:
        """Run as the owner, with ROLE replaced, then let the check look again."""
        await self.windmill.execute(sql.replace("ROLE", quoted(self.role)))
        self.check.invalidate()

    async def missing(self, collector: str) -> MissingCapability:
        with pytest.raises(MissingCapability) as caught:
            await self.check.require(collector)
        return caught.value

    async def works(self) -> list[str]:
        """The collectors that can work."""
        working = []
        for collector in ALL:
            try:
                await self.check.require(collector)
            except MissingCapability:
                continue
            working.append(collector)
        return working


GRANTS = """
CREATE SCHEMA ops;
CREATE VIEW ops.fairness_settings AS SELECT name, value FROM global_settings;
GRANT USAGE ON SCHEMA ops TO ROLE;
GRANT SELECT ON ops.fairness_settings TO ROLE;
GRANT SELECT (id, workspace_id, kind) ON v2_job TO ROLE;
GRANT SELECT (id, completed_at, duration_ms) ON v2_job_completed TO ROLE;
GRANT SELECT (operation, resource) ON audit TO ROLE;
GRANT SELECT, INSERT ON audit_partitioned TO ROLE;
GRANT USAGE ON SEQUENCE audit_id_seq TO ROLE;
GRANT SELECT, INSERT, UPDATE ON background_task_state TO ROLE;
GRANT SELECT ON v2_job_queue TO ROLE;
GRANT SELECT, DELETE ON metrics TO ROLE;
CREATE POLICY exporter_reads ON v2_job FOR SELECT TO ROLE USING (true);
CREATE POLICY exporter_reads ON audit FOR SELECT TO ROLE
    USING (operation IN ('workspace_fairness.capped', 'workspace_fairness.uncapped'));
CREATE POLICY exporter_reads ON audit_partitioned FOR SELECT TO ROLE
    USING (operation LIKE 'workspace\\_fairness.%');
CREATE POLICY exporter_writes ON audit_partitioned FOR INSERT TO ROLE
    WITH CHECK (operation = 'workspace_fairness.capped' OR operation = 'workspace_fairness.uncapped');
"""


@pytest.fixture
async def scene(windmill_url: str, windmill: Connection, make_role: MakeRole) -> AsyncIterator[Scene]:
    role = await make_role()
    database = open_database(target_at(windmill_url, user=role))
    scene = Scene(windmill, role, database)
    await scene.run(GRANTS)
    yield scene
    database.close()


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


HIDING = [
    "DROP POLICY exporter_reads ON v2_job",
    "ALTER POLICY exporter_reads ON v2_job USING (workspace_id = 'admins')",
    "ALTER POLICY exporter_reads ON v2_job TO windmill_admin",
    "DROP POLICY exporter_reads ON v2_job; CREATE POLICY only_updates ON v2_job FOR UPDATE TO ROLE USING (true)",
    "DROP POLICY exporter_reads ON v2_job; CREATE POLICY nothing ON v2_job TO ROLE",
    "CREATE POLICY less ON v2_job AS RESTRICTIVE TO ROLE USING (workspace_id <> 'secret')",
    "CREATE POLICY less ON v2_job AS RESTRICTIVE TO PUBLIC USING (workspace_id <> 'secret')",
    "ALTER TABLE v2_job_completed ENABLE ROW LEVEL SECURITY",
    "DROP POLICY exporter_reads ON audit",
    "ALTER POLICY exporter_reads ON audit USING (operation = 'workspace_fairness.capped')",
    "ALTER POLICY exporter_reads ON audit USING (operation IN ('workspace_fairness.capped', 'jobs.run'))",
    "ALTER POLICY exporter_reads ON audit USING (operation LIKE 'jobs.%' OR operation LIKE 'workspace.%')",
    (
        "ALTER POLICY exporter_reads ON audit USING (NOT (operation = 'workspace_fairness.capped' "
        "OR operation = 'workspace_fairness.uncapped'))"
    ),
    (
        "ALTER POLICY exporter_reads ON audit USING ((operation = 'workspace_fairness.capped' "
        "OR operation = 'workspace_fairness.uncapped') AND username = 'me')"
    ),
    "ALTER POLICY exporter_reads ON audit USING (resource = 'workspace_fairness.capped')",
    "CREATE POLICY less ON audit AS RESTRICTIVE TO ROLE USING (operation = 'workspace_fairness.capped')",
]


@pytest.mark.parametrize("sql", HIDING)
async def test_row_security_that_hides_rows_fails_the_collector(sql: str, scene: Scene) -> None:
    """A filtered role reads no rows and no error: without this everybody would be uncapped."""
    await scene.run(sql)
    assert await scene.works() == ["writing", "queue", "settings"]
    missing = await scene.missing("fairness")
    assert missing.reason == "row_security"
    assert "row security hides rows of public." in str(missing)
    if "RESTRICTIVE" in sql:
        assert "exempt the role from restrictive policy less" in str(missing)
    else:
        await scene.run(str(missing)[str(missing).index("CREATE POLICY") :])
        assert await scene.works() == list(ALL)


SHOWING = [
    "ALTER POLICY exporter_reads ON v2_job TO PUBLIC",
    "DROP POLICY exporter_reads ON v2_job; CREATE POLICY everything ON v2_job TO ROLE USING (true)",
    "DROP POLICY exporter_reads ON v2_job; GRANT windmill_admin TO ROLE",
    "CREATE POLICY others ON v2_job AS RESTRICTIVE TO windmill_admin USING (false)",
    "CREATE POLICY writes ON v2_job AS RESTRICTIVE FOR UPDATE TO ROLE USING (false)",
    "CREATE POLICY all_pass ON v2_job AS RESTRICTIVE TO ROLE USING (true)",
    "DROP POLICY exporter_reads ON v2_job; ALTER USER ROLE BYPASSRLS",
    "DROP POLICY exporter_reads ON v2_job; ALTER TABLE v2_job DISABLE ROW LEVEL SECURITY",
    "ALTER POLICY exporter_reads ON audit USING (true)",
    (
        "ALTER POLICY exporter_reads ON audit USING (operation = ANY (ARRAY['workspace_fairness.uncapped', "
        "'it''s', 'workspace_fairness.capped']::text[]))"
    ),
    "ALTER POLICY exporter_reads ON audit USING (operation LIKE 'workspace_fairness.%')",
    (
        "ALTER POLICY exporter_reads ON audit USING (operation = 'workspace_fairness.capped'); "
        "CREATE POLICY more ON audit TO ROLE USING (operation = 'workspace_fairness.uncapped')"
    ),
    "CREATE POLICY less ON audit AS RESTRICTIVE TO ROLE USING (operation LIKE 'workspace%')",
]


@pytest.mark.parametrize("sql", SHOWING)
async def test_row_security_that_shows_what_we_need_is_left_alone(sql: str, scene: Scene) -> None:
    await scene.run(sql)
    assert await scene.works() == list(ALL)


@pytest.mark.parametrize(
    "sql",
    [
        "DROP POLICY exporter_writes ON audit_partitioned",
        "ALTER POLICY exporter_writes ON audit_partitioned WITH CHECK (operation = 'workspace_fairness.capped')",
        "CREATE POLICY less ON audit_partitioned AS RESTRICTIVE FOR INSERT TO ROLE WITH CHECK (username = 'me')",
    ],
)
async def test_row_security_that_would_refuse_our_rows_is_found_before_they_are_written(sql: str, scene: Scene) -> None:
    await scene.run(sql)
    missing = await scene.missing("writing")
    assert (missing.reason, await scene.works()) == ("row_security", ["fairness", "queue", "settings"])
    assert "row security refuses INSERT on public.audit_partitioned" in str(missing)


async def test_what_the_policies_say_agrees_with_what_the_role_reads(scene: Scene) -> None:
    """The verdict against the server's own: rows of both operations are seen exactly when the check is content."""
    await scene.windmill.execute(
        "INSERT INTO audit (workspace_id, username, operation, action_kind) SELECT 'admins', 'system', name, 'update' "
        "FROM unnest($1::text[]) AS names (name)",
        [*OPERATIONS, "jobs.run"],
    )
    seen = Statement(
        "seen", "SELECT count(*) AS rows FROM {schema}.audit WHERE operation LIKE 'workspace\\_fairness.%'"
    )
    for sql in (sql for sql in (*HIDING, *SHOWING) if " ON audit " in sql and "username" not in sql):
        await scene.run(sql)
        async with scene.database.transaction("seen") as transaction:
            [row] = await transaction.fetch(seen)
        assert ("fairness" in await scene.works()) == (row["rows"] == 2), sql
        await scene.run(
            "DROP POLICY IF EXISTS less ON audit; DROP POLICY IF EXISTS more ON audit;"
            "DROP POLICY IF EXISTS exporter_reads ON audit;"
            "CREATE POLICY exporter_reads ON audit FOR SELECT TO ROLE USING (true)"
        )


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
