"""`check-database` on real databases in several broken states: what it finds, prints, and how it exits."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from exporter.check_database import survey
from exporter.check_report import render
from exporter.config import Config, DatabaseConfig, FairnessConfig, FairnessPins, QueueConfig
from exporter.database.database import Connection
from exporter.database.url import parse_url
from exporter.fairness.values import FairnessMode
from exporter.queue.values import QueueMode
from tests.database.servers import Standby
from tests.database.targets import eventually, sessions_of
from tests.deploy.grants import OBSERVING, WRITING
from tests.product import service
from tests.roles import ENFORCE, ENFORCE_ROLE, OBSERVE, OBSERVE_ROLE, SETTINGS_VIEW, MakeRole
from tests.sources import PROJECT

VIEW_FLAG = f"--fairness.settings-relation={SETTINGS_VIEW}"
PRINTABLE = re.compile(r"[ -~\n]*")


async def start(url: str, *flags: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command as an operator does."""
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "exporter", "check-database", *flags],
        env={"PATH": os.environ["PATH"], "DATABASE_URL": url, **environ},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


async def report(url: str, config: Config = OBSERVING) -> str:
    """What is printed; plain ASCII whatever the names, and readable at 80 columns."""
    text = render(await survey(config, lambda: parse_url(url)))
    assert PRINTABLE.fullmatch(text)
    assert max(len(line) for line in text.splitlines()) <= 80
    return text


def statements(text: str) -> list[str]:
    """The SQL of a report, as one would copy it."""
    _, _, block = text.partition("in this database:\n\n")
    return [statement for statement in block.partition("\n\n")[0].split(";\n") if statement.strip(";\n")]


def states(text: str) -> dict[tuple[str, str], str]:
    """The last cell of each row of the table, by collector and relation."""
    rows = re.findall(r"^(fairness|audit|queue|retention) +(\S+) +(?:[A-Z, ]+?) {2,}(\S.*)$", text, re.MULTILINE)
    return {(collector, relation): state for collector, relation, state in rows}


async def test_a_database_that_offers_everything_is_shown_as_a_table(windmill: Connection, role: MakeRole) -> None:
    outcome = await start(await role(OBSERVE), VIEW_FLAG)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    database = await windmill.fetchval("SELECT current_database()")
    version = await windmill.fetchval("SELECT current_setting('server_version')")
    assert outcome.stdout == (
        f"server     PostgreSQL {version} (supported: 14 to 18)\n"
        f"database   {database}\n"
        "role       windmill_exporter_observe\n"
        "schema     public\n"
        "modes      fairness.mode=shadow queue.mode=observe\n"
        "\n"
        "collector  relation                    needs   state\n"
        "---------  --------------------------  ------  -----\n"
        "fairness   v2_job_runtime              SELECT  ok\n"
        "fairness   v2_job_queue                SELECT  ok\n"
        "fairness   v2_job_completed            SELECT  ok\n"
        "fairness   v2_job                      SELECT  ok\n"
        "fairness   background_task_state       SELECT  ok\n"
        "fairness   windmill_exporter_settings  SELECT  ok\n"
        "audit      audit                       SELECT  ok\n"
        "audit      audit_partitioned           SELECT  ok\n"
        "queue      v2_job_queue                SELECT  ok\n"
        "queue      worker_ping                 SELECT  ok\n"
        "queue      metrics                     SELECT  ok\n"
        "queue      background_task_state       SELECT  ok\n"
        "\n"
        "Nothing is missing.\n"
    )


async def test_what_is_missing_is_told_with_the_statements_that_cure_it(windmill: Connection, role: MakeRole) -> None:
    url = await role(OBSERVE)
    await windmill.execute(
        "DROP POLICY windmill_exporter_observe_select ON v2_job;"
        f"REVOKE SELECT (updated_at) ON background_task_state FROM {OBSERVE_ROLE}"
    )
    outcome = await start(url, VIEW_FLAG)
    assert (outcome.returncode, outcome.stderr) == (1, "")
    assert outcome.stdout.partition("Missing:\n")[2] == (
        '  fairness: row security hides rows of public.v2_job for role\n    "windmill_exporter_observe"\n'
        '  fairness, queue: role "windmill_exporter_observe" lacks privileges on\n    public.background_task_state\n'
        "\n"
        "Run as the owner of the tables, or as a superuser, in this database:\n"
        "\n"
        'CREATE POLICY "windmill_exporter_observe_select" ON "public"."v2_job" FOR SELECT\n'
        '    TO "windmill_exporter_observe" USING (true);\n'
        'GRANT SELECT ("updated_at") ON "public"."background_task_state" TO\n'
        '    "windmill_exporter_observe";\n'
        "\n"
        "deploy/sql/ has roles with exactly these rights; docs/database-roles.md says how\nto use them.\n"
    )
    for statement in statements(outcome.stdout):
        await windmill.execute(statement)
    assert (await start(url, VIEW_FLAG)).returncode == 0


async def test_a_role_of_any_name_without_any_right_is_led_to_a_working_one(
    windmill: Connection, windmill_url: str
) -> None:
    """Every printed statement is run as it stands; the settings come from a view, and the table is never opened."""
    name = "gr\u00fcn \"; DROP\t\\ it's \U0001f642"
    quoted = '"' + name.replace('"', '""') + '"'
    url = windmill_url.replace("postgres@", f"{quote(name)}@")
    await windmill.execute(f"CREATE ROLE {quoted} LOGIN")
    try:
        view = "CREATE VIEW settings AS SELECT name, value FROM global_settings WHERE name LIKE 'workspace\\_fairness%'"
        await windmill.execute(view)
        text = await report(url, WRITING)
        assert "windmill_exporter_settings does not exist" in text
        fairness = FairnessConfig(mode=FairnessMode.ENFORCE, settings_relation="settings")
        config = Config(fairness=fairness, queue=WRITING.queue)
        text = await report(url, config)
        assert set(states(text).values()) == {"no grant", "no grant, policy"}
        for statement in statements(text):
            await windmill.execute(statement)
        assert (await report(url, config)).endswith("Nothing is missing.")
        async with service(url, config):
            pass
    finally:
        await windmill.execute(f"DROP OWNED BY {quoted}; DROP ROLE {quoted}")


async def test_nobody_is_told_to_open_the_table_of_secrets(windmill: Connection, role: MakeRole) -> None:
    text = await report(await role(OBSERVE), Config())
    assert states(text)["fairness", "global_settings"] == "no grant"
    assert "fairness.settings_relation" in text
    assert statements(text) == []


@pytest.mark.parametrize(
    ("break_it", "lost", "named"),
    [
        ("DROP TABLE worker_ping", {("queue", "worker_ping"): "no table"}, "public.worker_ping does"),
        (
            "ALTER TABLE v2_job_queue RENAME suspend_until TO gone",
            {("fairness", "v2_job_queue"): "no column"},
            "column public.v2_job_queue.suspend_until does",
        ),
        (
            "DROP TABLE audit CASCADE; DROP SEQUENCE IF EXISTS audit_id_seq CASCADE",
            {("audit", "audit"): "no table", ("audit", "audit_id_seq"): "no table"},
            "audit: public.audit_id_seq does",
        ),
        (
            "ALTER POLICY windmill_exporter_enforce_insert ON audit_partitioned WITH CHECK (operation = 'x')",
            {("audit", "audit_partitioned"): "no policy"},
            "audit: row security refuses INSERT on public.audit_partitioned",
        ),
        (
            f"REVOKE SELECT ON metrics FROM {ENFORCE_ROLE}",
            {("retention", "metrics"): "no grant"},
            "retention: role",
        ),
        (
            "CREATE POLICY less ON v2_job AS RESTRICTIVE USING (tag <> 'x')",
            {("fairness", "v2_job"): "no policy"},
            "restrictive policy less",
        ),
    ],
)
async def test_each_broken_state_is_named_under_its_collector_alone(
    windmill: Connection, role: MakeRole, break_it: str, lost: dict[tuple[str, str], str], named: str
) -> None:
    """Field cases F31 and F32."""
    url = await role(OBSERVE, ENFORCE)
    await windmill.execute(break_it)
    text = await report(url, WRITING)
    assert {key: state for key, state in states(text).items() if state != "ok"} == lost
    assert named in " ".join(text.split())


async def test_a_schema_that_is_not_there_is_one_sentence(windmill_url: str) -> None:
    """Field case F04."""
    config = Config(database=DatabaseConfig(schema="wm"))
    text = await report(windmill_url, config)
    assert set(states(text).values()) == {"no schema"}
    assert text.count('schema "wm" does not exist') == 1
    assert "schema     wm" in text


async def test_the_table_follows_the_modes(windmill_url: str) -> None:
    off = Config(fairness=FairnessConfig(mode=FairnessMode.OFF), queue=QueueConfig(mode=QueueMode.OFF))
    assert states(await report(windmill_url, off)) == {}
    pins = FairnessPins(enabled=True, max_percent=50, duration_secs=10, min_total_jobs=4)
    pinned = Config(fairness=FairnessConfig(settings=pins), queue=off.queue)
    assert ("fairness", "global_settings") not in states(await report(windmill_url, pinned))
    assert {collector for collector, _ in states(await report(windmill_url, pinned))} == {"fairness", "audit"}
    writing = Config(fairness=off.fairness, queue=QueueConfig(mode=QueueMode.SAMPLE))
    assert {collector for collector, _ in states(await report(windmill_url, writing))} == {"queue", "retention"}


async def test_a_role_that_is_read_only_by_default_cannot_be_used_for_writing(
    windmill: Connection, role: MakeRole
) -> None:
    url = await role(OBSERVE, ENFORCE)
    await windmill.execute(f"ALTER ROLE {ENFORCE_ROLE} SET default_transaction_read_only = on")
    text = " ".join((await report(url, WRITING)).split())
    assert "(read-only by default, supported: 14 to 18)" in text
    assert "the configured modes write, but the server has default_transaction_read_only on for this role" in text
    assert (await report(url)).endswith("Nothing is missing.")


@pytest.fixture(scope="module")
def standby_url() -> Iterator[str]:
    with Standby() as server:
        yield server.url()


async def test_a_standby_will_do_for_reading_only(standby_url: str) -> None:
    found = await survey(WRITING, lambda: parse_url(standby_url))
    assert found.server.standby
    assert [problem.partition(":")[0] for problem in found.server_problems] == [
        "the configured modes write, but the server is a standby"
    ]
    assert (await survey(OBSERVING, lambda: parse_url(standby_url))).server_problems == ()


async def test_a_server_that_is_too_old_is_missing_what_no_grant_cures(
    windmill_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = windmill_url
    assert (await report(url, Config())).endswith("Nothing is missing.")
    monkeypatch.setattr("exporter.check_database.OLDEST_SUPPORTED", 99)
    monkeypatch.setattr("exporter.database.server.OLDEST_SUPPORTED", 99)
    text = await report(url, Config())
    assert re.search(r"Missing:\n  PostgreSQL \d+ is too old: 99 is the oldest that works\n", text)
    assert set(states(text).values()) == {"ok"}


async def test_nothing_is_written_and_no_row_is_read(windmill: Connection, role: MakeRole) -> None:
    """Row counts would cost more than the question is worth, and may be nobody's business."""
    url = await role(OBSERVE, ENFORCE)
    touched = "SELECT relname, seq_scan, idx_scan, n_tup_ins, n_tup_upd FROM pg_stat_user_tables ORDER BY relid"
    await windmill.execute("SELECT pg_stat_force_next_flush()")
    before = await windmill.fetch(touched)
    await report(url, WRITING)

    async def all_are_gone() -> bool:
        return not await sessions_of(windmill, "%")

    await eventually(all_are_gone)  # a session hands in its statistics when it ends
    assert await windmill.fetch(touched) == before


async def test_a_database_that_cannot_be_reached_is_one_line_and_exit_code_1() -> None:
    outcome = await start("postgres://u:hunter2@127.0.0.1:1/windmill?sslmode=disable")
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith('cannot connect to database "windmill" as user "u" at 127.0.0.1:1: ')
    assert outcome.stderr.count("\n") == 1
    assert "hunter2" not in outcome.stderr


async def test_a_url_file_that_is_missing_is_exit_code_1_and_a_wrong_configuration_2() -> None:
    outcome = await start("", DATABASE_URL_FILE="/no/such")
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr == "database.url_file /no/such cannot be read: No such file or directory\n"
    outcome = await start("postgres://h/d", "--fairness.mode=loud")
    assert (outcome.returncode, outcome.stdout) == (2, "")


async def test_warnings_about_the_configuration_come_first(windmill_url: str) -> None:
    outcome = await start(windmill_url, WINDMILL_EXPORTER_METRICS_MAX_TAG="3", PGPASSWORD="hunter2")
    assert outcome.returncode == 0
    assert [line.partition(":")[0] for line in outcome.stderr.splitlines()] == ["warning", "warning"]
    assert "hunter2" not in outcome.stderr + outcome.stdout


async def test_windmills_own_role_has_everything_that_writing_needs(windmill_url: str) -> None:
    outcome = await start(windmill_url, "--fairness.mode=enforce", "--queue.mode=sample")
    assert outcome.returncode == 0
    assert "retention  metrics                SELECT, DELETE          ok\n" in outcome.stdout
