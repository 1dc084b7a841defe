"""`deploy/sql`: each role can do what its modes need and nothing else, and uninstalling leaves no trace."""

from __future__ import annotations

import asyncpg
import pytest

from exporter.check_database import survey
from exporter.database.database import Connection
from exporter.database.url import parse_url
from exporter.errors import DatabaseUnavailable
from exporter.fairness.settings import SETTING_NAMES
from tests.deploy.grants import CONFIGS, OBSERVING, granted_rights, lay_out, run_statements, start_over
from tests.roles import ENFORCE, ENFORCE_ROLE, OBSERVE, OBSERVE_ROLE, UNINSTALL, MakeRole, url_of

# Read by the list of fairness events, which is no collector.
EVENTS_ONLY = {("audit", None), ("audit_partitioned", "parameters")}

TRACES = """
SELECT (SELECT count(*) FROM pg_roles WHERE rolname LIKE 'windmill\\_exporter\\_%')
     + (SELECT count(*) FROM pg_policies WHERE policyname LIKE 'windmill\\_exporter\\_%')
     + (SELECT count(*) FROM pg_class WHERE relname LIKE 'windmill\\_exporter\\_%')
"""
SHAPE = """
SELECT array_agg(relname || coalesce(relacl::text, '') || relrowsecurity ORDER BY oid) FROM pg_class
 WHERE relnamespace = 'public'::regnamespace
"""


async def test_running_the_files_again_changes_nothing(windmill: Connection, role: MakeRole) -> None:
    await role(OBSERVE, ENFORCE)
    before = await granted_rights(windmill)
    assert len(before) > 50
    await role(OBSERVE, ENFORCE)
    assert await granted_rights(windmill) == before


async def test_uninstalling_leaves_no_trace_whatever_was_installed(windmill: Connection, role: MakeRole) -> None:
    shape = await windmill.fetchval(SHAPE)
    for scripts in ([OBSERVE, ENFORCE], [OBSERVE], []):
        await role(*scripts)
        await windmill.execute(UNINSTALL)
        assert await windmill.fetchval(TRACES) == 0
        after = await windmill.fetchval(SHAPE)
        assert [entry.replace("{}", "") for entry in after] == shape


async def test_uninstalling_passes_over_what_windmill_has_dropped_since(windmill: Connection, role: MakeRole) -> None:
    await role(OBSERVE, ENFORCE)
    await windmill.execute(
        "DROP TABLE audit CASCADE; DROP TABLE worker_ping; DROP SEQUENCE IF EXISTS audit_id_seq CASCADE"
    )
    await windmill.execute(UNINSTALL)
    assert await windmill.fetchval(TRACES) == 0


async def test_the_owner_of_the_tables_can_run_all_of_it(windmill: Connection, windmill_url: str) -> None:
    await windmill.execute("CREATE ROLE wm_owner LOGIN CREATEROLE")
    database = await windmill.fetchval("SELECT current_database()")
    await windmill.execute(f"ALTER DATABASE {database} OWNER TO wm_owner; ALTER SCHEMA public OWNER TO wm_owner")
    tables = await windmill.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    for row in tables:
        await windmill.execute(f"ALTER TABLE {row['tablename']} OWNER TO wm_owner")
    owner = await asyncpg.connect(url_of("wm_owner", windmill_url))
    try:
        for script in (OBSERVE, ENFORCE, OBSERVE, ENFORCE):
            await owner.execute(script)
        assert (await survey(CONFIGS[ENFORCE_ROLE], lambda: parse_url(url_of(ENFORCE_ROLE, windmill_url)))).complete
        await owner.execute(UNINSTALL)
        assert await windmill.fetchval(TRACES) == 0
    finally:
        await owner.close()
        await windmill.execute(f"ALTER DATABASE {database} OWNER TO postgres")
        await windmill.execute("DROP OWNED BY wm_owner CASCADE; DROP ROLE wm_owner")


async def test_a_table_in_use_makes_a_file_fail_as_a_whole_instead_of_blocking_windmill(
    windmill: Connection, windmill_url: str
) -> None:
    busy = await asyncpg.connect(windmill_url)
    async with busy.transaction():
        await busy.execute("LOCK TABLE audit_partitioned IN ROW EXCLUSIVE MODE")
        with pytest.raises(asyncpg.LockNotAvailableError):
            await windmill.execute(OBSERVE.replace("'2s'", "'50ms'"))
    await busy.close()
    await windmill.execute("ROLLBACK")
    assert await windmill.fetchval(TRACES) == 0


@pytest.mark.parametrize("name", [OBSERVE_ROLE, ENFORCE_ROLE])
async def test_every_single_right_is_needed_and_named_when_it_is_missing(
    windmill: Connection, windmill_url: str, role: MakeRole, name: str
) -> None:
    """The statements themselves fail without it, the check says so first, and what the check advises cures it."""
    await role(OBSERVE, ENFORCE)
    await lay_out(windmill)
    url, config = url_of(name, windmill_url), CONFIGS[name]
    await start_over(windmill)
    assert await run_statements(url, config) is None
    rights = [right for right in await granted_rights(windmill) if right.role == name]
    assert len(rights) > 10
    for right in rights:
        await windmill.execute(right.revoke)
        found = await survey(config, lambda: parse_url(url))
        problems = [problem for finding in found.findings for problem in finding.problems]
        assert problems, right
        assert all(right.table in problem.sentence for problem in problems)
        hidden = right.revoke.startswith("DROP POLICY") and "insert" not in right.revoke
        if not hidden and not {(right.table, None), (right.table, right.column)} & EVENTS_ONLY:
            await start_over(windmill)
            assert await run_statements(url, config) is not None, right
        for remedy in dict.fromkeys(problem.remedy for problem in problems):
            await windmill.execute(remedy)
        assert (await survey(config, lambda: parse_url(url))).complete


async def test_a_hardened_database_needs_the_two_rights_that_everybody_has_elsewhere(
    windmill: Connection, role: MakeRole
) -> None:
    database = await windmill.fetchval("SELECT current_database()")
    await windmill.execute(f"REVOKE ALL ON DATABASE {database} FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC")
    url = await role(OBSERVE)
    assert (await survey(OBSERVING, lambda: parse_url(url))).complete
    await windmill.execute(f"REVOKE USAGE ON SCHEMA public FROM {OBSERVE_ROLE}")
    found = await survey(OBSERVING, lambda: parse_url(url))
    assert {problem.remedy for finding in found.findings for problem in finding.problems} == {
        f'GRANT USAGE ON SCHEMA "public" TO "{OBSERVE_ROLE}"'
    }
    await windmill.execute(f"REVOKE CONNECT ON DATABASE {database} FROM {OBSERVE_ROLE}")
    with pytest.raises(DatabaseUnavailable, match="permission denied for database"):
        await survey(OBSERVING, lambda: parse_url(url))


async def test_the_view_shows_the_four_settings_to_us_and_to_nobody_else(windmill: Connection, role: MakeRole) -> None:
    for name in (*SETTING_NAMES, "license_key", "workspaceXfairness_enabled"):
        await windmill.execute("INSERT INTO global_settings VALUES ($1, 'true')", name)
    url = await role(OBSERVE)
    reader = await asyncpg.connect(url)
    rows = await reader.fetch("SELECT name FROM windmill_exporter_settings")
    assert {row["name"] for row in rows} == set(SETTING_NAMES)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await reader.fetch("SELECT name FROM global_settings")
    await reader.close()
    for other in ("windmill_user", "windmill_admin"):
        assert not await windmill.fetchval(
            "SELECT has_table_privilege($1::text::name, 'windmill_exporter_settings', 'SELECT, UPDATE')", other
        )


async def test_the_audit_log_is_open_only_for_the_two_operations(windmill: Connection, role: MakeRole) -> None:
    insert = (
        'INSERT INTO audit_partitioned (workspace_id, username, operation, action_kind, "timestamp", resource) '
        "VALUES ('admins', 'system', $1, 'update', now(), 'w')"
    )
    await windmill.execute(insert, "users.login")
    writer = await asyncpg.connect(await role(OBSERVE, ENFORCE))
    await writer.execute(insert, "workspace_fairness.capped")
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        await writer.execute(insert, "users.login")
    assert await writer.fetchval("SELECT count(operation) FROM audit_partitioned") == 1
    await writer.close()


async def test_the_observing_role_can_write_nothing(windmill: Connection, role: MakeRole) -> None:
    await role(OBSERVE, ENFORCE)
    privileges = {right.revoke.split()[1] for right in await granted_rights(windmill) if right.role == OBSERVE_ROLE}
    assert privileges == {"SELECT", "POLICY"}
