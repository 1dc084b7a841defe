"""Transitions out of both audit tables: the latest, newest first, whatever the size of the log."""

from __future__ import annotations

import asyncio

import pytest

from exporter.database.database import Connection, Database
from exporter.errors import DatabaseError, MissingCapability
from exporter.fairness.events import EVENTS, EventLog, events
from tests.queue.plans import indexes, plan_of, touched_blocks

INSERT = """
INSERT INTO {table} (workspace_id, "timestamp", username, operation, action_kind, resource, parameters, email)
SELECT $1, now() - n * interval '1 second', 'system', $2, 'update', $3 || n, $4::text::jsonb, 'system@windmill.dev'
  FROM generate_series($5::int, $6::int) AS n
"""
PARAMETERS = '{"max_percent": "50", "window_secs": "10", "total_overloaded": "1"}'


async def add_events(
    connection: Connection,
    operation: str,
    first: int,
    last: int,
    *,
    table: str = "audit_partitioned",
    workspace: str = "w",
    admins: str = "admins",
    parameters: str | None = PARAMETERS,
) -> None:
    """One event a second ago for each number of seconds, named after it."""
    await connection.execute("SELECT make_audit_partitions_for_tests(2)")
    await connection.execute(
        INSERT.format(table=table), admins, f"workspace_fairness.{operation}", workspace, parameters, first, last
    )


async def test_both_tables_and_both_operations_newest_first(database: Database, windmill: Connection) -> None:
    await add_events(windmill, "capped", 3, 3)
    await add_events(windmill, "uncapped", 2, 2, parameters=None)
    await add_events(windmill, "capped", 1, 1, table="audit")
    await add_events(windmill, "uncapped", 4, 4, table="audit", parameters=None)
    now = await windmill.fetchval("SELECT date_part('epoch', now())")
    found = await events(database)
    assert [(one.workspace, one.operation.rpartition(".")[2]) for one in found] == [
        ("w1", "capped"),
        ("w2", "uncapped"),
        ("w3", "capped"),
        ("w4", "uncapped"),
    ]
    assert found[0].parameters == {"max_percent": "50", "window_secs": "10", "total_overloaded": "1"}
    assert found[1].parameters is None
    assert found[0].at == pytest.approx(now - 1, abs=5)


async def test_at_most_the_latest_200_of_each(database: Database, windmill: Connection) -> None:
    # Windmill's ids rise with time: the oldest are inserted first.
    for seconds in (400, 300, 200, 100):
        await add_events(windmill, "capped", seconds - 99, seconds)
    await add_events(windmill, "uncapped", 1000, 1149, table="audit")
    await add_events(windmill, "uncapped", 1, 150)
    found = await events(database)
    capped = [one for one in found if one.operation.endswith(".capped")]
    uncapped = [one for one in found if one.operation.endswith(".uncapped")]
    assert len(capped) == len(uncapped) == 200
    assert [one.workspace for one in capped] == [f"w{number}" for number in range(1, 201)]
    assert [one.workspace for one in uncapped][:150] == [f"w{number}" for number in range(1, 151)]
    assert [one.at for one in found] == sorted((one.at for one in found), reverse=True)


@pytest.mark.parametrize("parameters", ["null", "[]", '"text"', "7"])
async def test_details_of_another_shape_are_none(database: Database, windmill: Connection, parameters: str) -> None:
    await add_events(windmill, "capped", 1, 1, parameters=parameters)
    [found] = await events(database)
    assert found.parameters is None


async def test_what_is_no_transition_is_left_out(database: Database, windmill: Connection) -> None:
    await add_events(windmill, "capped", 1, 1, admins="other")
    await add_events(windmill, "else", 1, 1)
    await windmill.execute(
        'INSERT INTO audit (workspace_id, "timestamp", username, operation, action_kind, resource) VALUES'
        " ('admins', 'infinity', 'x', 'workspace_fairness.capped', 'update', 'w'),"
        " ('admins', now(), 'x', 'workspace_fairness.capped', 'update', NULL)"
    )
    assert await events(database) == ()


@pytest.mark.parametrize("statistics", ["without", "with"])
async def test_a_large_audit_log_is_read_by_index_only(windmill: Connection, statistics: str) -> None:
    await windmill.execute("SELECT make_audit_partitions_for_tests(2)")
    for table in ("audit", "audit_partitioned"):
        await windmill.execute(
            f'INSERT INTO {table} (workspace_id, "timestamp", username, operation, action_kind, resource)'
            " SELECT CASE WHEN n % 3 = 0 THEN 'admins' ELSE 'ws' || n % 50 END, now() - n * interval '0.5 s', 'u',"
            " CASE WHEN n % 30 = 0 THEN 'workspace_fairness.capped' ELSE 'jobs.run' END, 'execute', 'w' || n"
            " FROM generate_series(1, 100000) AS n"
        )
    if statistics == "with":
        await windmill.execute("ANALYZE audit; ANALYZE audit_partitioned")
    nodes = await plan_of(windmill, EVENTS, planner={})
    read = {node["Node Type"] for node in nodes if node.get("Actual Rows") and "Relation Name" in node}
    assert read
    assert "Seq Scan" not in read
    assert all("workspace_operation" in name or name.endswith("_idx") for name in indexes(nodes))
    assert touched_blocks(nodes) < 3000


async def test_requests_share_and_a_refused_capability_is_told(database: Database, windmill: Connection) -> None:
    asked: list[int] = []

    async def require() -> None:
        asked.append(1)

    log = EventLog(database, require)
    await add_events(windmill, "capped", 1, 1)
    results = await asyncio.gather(*(log.latest() for _ in range(10)))
    assert len(asked) == 1
    assert {len(result) for result in results} == {1}
    await log.close()

    async def refuse() -> None:
        raise MissingCapability("row security hides rows of audit", reason="row_security")

    with pytest.raises(DatabaseError, match="row security"):
        await EventLog(database, refuse).latest()
