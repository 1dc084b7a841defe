"""Row security that hides rows, or would refuse ours, is told apart from row security that does no harm."""

from __future__ import annotations

import pytest

from exporter.database.statement import Statement
from tests.database.scene import ALL, OPERATIONS, Scene

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
