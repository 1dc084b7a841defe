"""Transactions carry their limits, say what went wrong in our own errors, and leave nothing behind."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

import asyncpg
import pytest

from exporter.config import DatabaseConfig
from exporter.database.connect import Connector
from exporter.database.database import Connection, Database
from exporter.database.statement import Statement, quote_relation, split_relation
from exporter.database.transaction import Transaction, begin_text
from exporter.database.url import parse_url
from exporter.errors import DatabaseError, DatabaseTimeout, MissingCapability, StatementFailed
from tests.database.targets import MakeRole, open_database, quoted, sessions_of, target_at

PID = Statement("pid", "SELECT pg_backend_pid() AS pid")
ADD = Statement("add", "INSERT INTO {schema}.metrics (id, value) VALUES ($1, $2::text::jsonb)")
COUNT = Statement("count", "SELECT count(*) AS value FROM {schema}.metrics")
SLEEP = Statement("sleep", "SELECT pg_sleep($1)")


async def run(database: Database, statement: Statement, *arguments: object, **options: object) -> list[asyncpg.Record]:
    """One statement in a transaction of its own."""
    async with database.transaction("test", **options) as transaction:  # type: ignore[arg-type]
        return await transaction.fetch(statement, *arguments)


async def add_and_raise(block: AbstractAsyncContextManager[Transaction], error: Exception) -> None:
    """Write a row in the block of a transaction, then fail for a reason of our own."""
    async with block as transaction:
        await transaction.execute(ADD, "queue_count_a", "1")
        raise error


async def setting(database: Database, name: str, **options: object) -> str:
    [row] = await run(database, Statement("setting", "SELECT current_setting($1) AS value"), name, **options)
    return str(row["value"])


async def count(database: Database) -> int:
    [row] = await run(database, COUNT)
    return int(row["value"])


async def pid(database: Database) -> int:
    [row] = await run(database, PID)
    return int(row["pid"])


async def test_a_transaction_sets_its_limits_locally(database: Database) -> None:
    assert await setting(database, "statement_timeout") == "4s"
    assert await setting(database, "lock_timeout") == "2s"
    assert await setting(database, "idle_in_transaction_session_timeout") == "5s"
    assert await setting(database, "statement_timeout", statement_seconds=0.25) == "250ms"
    assert await setting(database, "application_name") == "windmill-exporter test"
    assert await setting(database, "transaction_isolation", isolation="REPEATABLE READ") == "repeatable read"
    assert await setting(database, "enable_seqscan", planner={"enable_seqscan": "off"}) == "off"
    assert await setting(database, "enable_seqscan") == "on"


async def test_no_statement_is_ever_compiled(database: Database, windmill: Connection) -> None:
    """Field case F23: compiling alone takes longer than the limit that a careful role carries."""
    assert await windmill.fetchval("SHOW jit") == "on"
    assert await setting(database, "jit") == "off"


@pytest.mark.parametrize(("of_role", "in_force"), [("50ms", "50ms"), ("0", "4s"), ("10min", "4s"), ("4s", "4s")])
async def test_a_lower_limit_of_the_role_is_kept_and_never_raised(
    of_role: str, in_force: str, windmill_url: str, windmill: Connection, make_role: MakeRole
) -> None:
    """Field case F23."""
    role = await make_role()
    await windmill.execute(f"ALTER ROLE {quoted(role)} SET statement_timeout = '{of_role}'")
    database = open_database(target_at(windmill_url, user=role))
    assert await setting(database, "statement_timeout") == in_force
    database.close()


async def test_the_roles_limit_ends_only_the_statement_that_exceeds_it(
    windmill_url: str, windmill: Connection, make_role: MakeRole
) -> None:
    """Field case F23: counted as a timeout; the connection goes on."""
    role = await make_role()
    await windmill.execute(f"ALTER ROLE {quoted(role)} SET statement_timeout = '50ms'")
    database = open_database(target_at(windmill_url, user=role))
    before = await pid(database)
    with pytest.raises(DatabaseTimeout, match=r"^test: canceling statement") as caught:
        await run(database, SLEEP, 5.0)
    assert (caught.value.reason, caught.value.sqlstate) == ("statement_timeout", "57014")
    assert await pid(database) == before
    database.close()


async def test_a_lock_is_not_waited_for_longer_than_its_limit(windmill_url: str, windmill: Connection) -> None:
    """Field case F22: a migration holds the table; we stop waiting and queue in front of nobody."""
    database = open_database(parse_url(windmill_url), DatabaseConfig(lock_timeout_seconds=0.1))
    async with windmill.transaction():
        await windmill.execute("LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(DatabaseTimeout) as caught:
            await count(database)
        assert caught.value.reason == "lock_timeout"
        waiting = await windmill.fetchval(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'metrics'::regclass"
        )
        assert waiting == 0
    assert await count(database) == 0
    database.close()


async def test_leaving_the_block_commits_and_a_read_only_transaction_cannot_write(
    database: Database, windmill: Connection
) -> None:
    async with database.transaction("write", read_only=False) as transaction:
        assert await transaction.execute(ADD, "queue_count_a", "1") == 1
    with pytest.raises(StatementFailed) as caught:
        async with database.transaction("read") as transaction:
            await transaction.execute(ADD, "queue_count_b", "1")
    assert (caught.value.reason, caught.value.retryable) == ("read_only", True)
    assert [row["id"] for row in await windmill.fetch("SELECT id FROM metrics")] == ["queue_count_a"]


async def test_an_operators_read_only_default_is_obeyed(
    windmill_url: str, windmill: Connection, make_role: MakeRole
) -> None:
    """Field case F19: before a planned switch-over, or on a server that was demoted."""
    await windmill.execute(
        "ALTER DATABASE " + quoted(parse_url(windmill_url).database) + " SET default_transaction_read_only = on"
    )
    database = open_database(parse_url(windmill_url))
    with pytest.raises(StatementFailed) as caught:
        async with database.transaction("write", read_only=False) as transaction:
            await transaction.execute(ADD, "queue_count_a", "1")
    assert caught.value.reason == "read_only"
    database.close()


async def test_an_error_of_the_callers_own_rolls_back_and_comes_out_unchanged(database: Database) -> None:
    before = await pid(database)
    for own in (KeyError("own"), OSError("own"), TimeoutError("own")):
        with pytest.raises(type(own), match="own"):
            await add_and_raise(database.transaction("write", read_only=False), own)
    assert await count(database) == 0
    assert await pid(database) == before


async def test_what_the_server_refuses_is_a_database_error_inside_the_block_already(database: Database) -> None:
    async with database.transaction("test") as transaction:
        with pytest.raises(
            MissingCapability, match=r'^test: relation "nowhere" does not exist \(SQLSTATE 42P01\)'
        ) as caught:
            await transaction.fetch(Statement("missing", "SELECT a FROM nowhere"))
        assert caught.value.reason == "missing_table"
        with pytest.raises(StatementFailed, match="current transaction is aborted"):
            await transaction.fetch(PID)
        with pytest.raises(StatementFailed, match="the transaction was rolled back"):
            await transaction.commit(read_only=True)
    assert database.pool_connections == {"idle": 1, "busy": 0}


@pytest.mark.parametrize(
    ("sql", "kind", "reason"),
    [
        ("SELECT missing FROM {schema}.metrics", MissingCapability, "missing_column"),
        ("SELECT 1 FROM nowhere.metrics", MissingCapability, "missing_table"),
        ("SELECT 1/0", StatementFailed, "statement_error"),
        ("not SQL", StatementFailed, "statement_error"),
        ("SELECT $1::int + 1", StatementFailed, "statement_error"),
    ],
)
async def test_a_refused_statement_costs_no_connection(
    sql: str, kind: type[DatabaseError], reason: str, database: Database
) -> None:
    before = await pid(database)
    arguments = ["no integer"] if "$1" in sql else []
    with pytest.raises(kind) as caught:
        async with database.transaction("test") as transaction:
            await transaction.fetch(Statement("bad", sql), *arguments)
    assert (caught.value.reason, caught.value.retryable) == (reason, False)
    assert await pid(database) == before


async def add_and_fail(transaction: Transaction, name: str, error: type[Exception]) -> None:
    """Write a row in a savepoint, then fail in the server or for a reason of our own."""
    async with transaction.savepoint(name):
        await transaction.execute(ADD, "queue_count_b", "1")
        if error is StatementFailed:
            await transaction.execute(ADD, "queue_count_c", "no JSON")
        raise error


async def test_a_savepoint_undoes_its_own_part_alone(database: Database, windmill: Connection) -> None:
    async with database.transaction("write", read_only=False) as transaction:
        await transaction.execute(ADD, "queue_count_a", "1")
        for name, error in (('a "name', StatementFailed), ("own", KeyError)):
            with pytest.raises(error):
                await add_and_fail(transaction, name, error)
        async with transaction.savepoint("good"):
            await transaction.execute(ADD, "queue_count_e", "1")
    stored = await windmill.fetch("SELECT id FROM metrics ORDER BY id")
    assert [row["id"] for row in stored] == ["queue_count_a", "queue_count_e"]


async def test_tables_are_found_by_the_schema_of_the_database(database: Database, windmill: Connection) -> None:
    """Field case F04: never the decoy of the same name on the search path."""
    await windmill.execute('CREATE SCHEMA "w m"; CREATE TABLE "w m".metrics (LIKE public.metrics INCLUDING DEFAULTS)')
    await windmill.execute("INSERT INTO \"w m\".metrics (id, value) VALUES ('queue_count_a', '1')")
    assert await count(database) == 0
    database.schema = "w m"
    assert await count(database) == 1


async def test_jsonb_stays_what_it_was_over_a_reconnect(database: Database, windmill: Connection) -> None:
    """Field case F94."""
    since = '{"since": 1760000000.123457}'
    for name in ("before", "after"):
        async with database.transaction("write", read_only=False) as transaction:
            await transaction.execute(ADD, f"queue_count_{name}", "17")
            await transaction.execute(ADD, f"queue_delay_{name}", since)
        for session in await sessions_of(windmill, "%"):
            await windmill.execute("SELECT pg_terminate_backend($1)", session["pid"])
    rows = await windmill.fetch("SELECT jsonb_typeof(value) AS type, value::text AS text FROM metrics ORDER BY id")
    assert [tuple(row) for row in rows] == [("number", "17")] * 2 + [("object", since)] * 2


SESSION = """
SELECT (SELECT json_agg(json_build_array(name, setting, source) ORDER BY name) FROM pg_settings)::text AS settings,
       (SELECT count(*) FROM pg_prepared_statements) AS statements,
       (SELECT count(*) FROM pg_cursors) AS cursors,
       (SELECT count(*) FROM pg_listening_channels()) AS channels,
       (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory') AS advisory_locks,
       (SELECT count(*) FROM pg_class WHERE relpersistence = 't') AS temporary_tables
"""


async def work_through_everything(database: Database) -> None:
    """Transactions of every kind and every ending, on the database's connections."""
    for number in range(20):
        async with database.transaction("read", planner={"enable_sort": "off", "work_mem": "8MB"}) as transaction:
            await transaction.fetch(COUNT)
        async with database.transaction("write", read_only=False, isolation="REPEATABLE READ") as transaction:
            await transaction.execute(ADD, f"queue_count_{number}", "1")
            with pytest.raises(StatementFailed):
                async with transaction.savepoint("part"):
                    await transaction.execute(ADD, "queue_count_x", "no JSON")
        with pytest.raises(DatabaseError):
            async with database.transaction("refused") as transaction:
                await transaction.fetch(Statement("missing", "SELECT a FROM nowhere"))
        with pytest.raises(DatabaseTimeout):
            async with database.transaction("slow", statement_seconds=0.01) as transaction:
                await transaction.fetch(SLEEP, 1.0)
        with pytest.raises(KeyError):
            await add_and_raise(database.transaction("own", read_only=False), KeyError("own"))


async def test_no_transaction_leaves_anything_in_its_session(windmill_url: str) -> None:
    opened: list[Connection] = []
    connect = Connector(lambda: parse_url(windmill_url), DatabaseConfig())

    async def connect_and_note() -> Connection:
        opened.append(await connect())
        return opened[-1]

    database = Database(connect_and_note, DatabaseConfig())
    await pid(database)
    before = await opened[0].fetchrow(SESSION)
    await work_through_everything(database)
    assert await opened[0].fetchrow(SESSION) == before
    assert (len(opened), database.generation) == (1, 1)
    database.close()


async def test_a_transaction_that_its_client_forgot_is_ended_by_the_server(
    windmill_url: str, windmill: Connection
) -> None:
    """Field case F21: a replica frozen in the middle of a transaction does not hold its locks for long."""
    frozen = await Connector(lambda: parse_url(windmill_url), DatabaseConfig())()
    text = begin_text(
        isolation="READ COMMITTED",
        read_only=False,
        statement_seconds=4,
        lock_seconds=2,
        idle_seconds=0.2,
        application="windmill-exporter frozen",
        planner={},
    )
    await frozen.execute(text)
    await frozen.execute("LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
    await asyncio.wait_for(windmill.fetchval("SELECT count(*) FROM metrics"), 5)
    assert await sessions_of(windmill) == []
    frozen.terminate()


def test_relations_are_named_with_or_without_their_schema() -> None:
    assert split_relation("global_settings", "public") == ("public", "global_settings")
    assert split_relation("ops.settings", "public") == ("ops", "settings")
    assert quote_relation('ops.set"tings', "public") == '"ops"."set""tings"'


async def test_after_a_renewal_no_earlier_connection_is_used_again(database: Database) -> None:
    """One that is in use ends with its transaction, which itself is not disturbed."""
    idle = await pid(database)
    async with database.transaction("test") as transaction:
        [row] = await transaction.fetch(PID)
        assert row["pid"] == idle
        database.renew()
        assert [dict(row) for row in await transaction.fetch(PID)] == [{"pid": idle}]
    assert database.pool_connections == {"idle": 0, "busy": 0}
    fresh = await pid(database)
    assert fresh != idle
    database.renew()
    assert database.pool_connections == {"idle": 0, "busy": 0}
    assert await pid(database) not in {idle, fresh}
