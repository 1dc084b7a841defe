"""Who waits for whom: shared queries, locks, deadlines, clients that leave."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from exporter.config import DatabaseConfig
from exporter.database.database import Connection, Database
from exporter.errors import DatabaseError, DatabaseTimeout
from exporter.queue.history import History, Kind, RequestedWindow
from tests.database.targets import eventually, sessions_of
from tests.queue.scene import add_sample, database_at
from tests.queue.series_scene import KINDS, lines_of

ENDLESS = """
DROP TABLE metrics;
CREATE VIEW metrics AS
SELECT 'queue_count_a'::varchar AS id, '1'::jsonb AS value, now() - one * interval '1 second' AS created_at
  FROM generate_series(1, 100000) AS one, generate_series(1, 100000) AS other
"""


async def test_identical_requests_share_one_query_and_others_do_not(history: History, windmill: Connection) -> None:
    await add_sample(windmill, "queue_count_a", "4", 100)
    lock = windmill.transaction()
    await lock.start()
    await windmill.execute("LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
    same = [asyncio.create_task(lines_of(history)) for _ in range(20)]
    await eventually(lambda: _waiting(windmill, 1))
    await lock.rollback()
    results = await asyncio.gather(*same)
    assert all(result.keys() == results[0].keys() for result in results)
    assert all(result == results[0] for result in results), "one query has one now"
    first, second = await asyncio.gather(lines_of(history), lines_of(history, slots=20))
    assert first.keys() == second.keys()


async def _waiting(windmill: Connection, number: int) -> bool:
    await windmill.execute("SELECT pg_stat_clear_snapshot()")
    return len([row for row in await sessions_of(windmill) if row["wait_event_type"] == "Lock"]) == number


async def test_the_last_one_that_leaves_ends_the_query(windmill: Connection, windmill_url: str) -> None:
    """The server ends it too, by itself: nothing of ours may ask it to over another connection."""
    database = database_at(windmill_url)
    history = History(database)
    await windmill.execute(ENDLESS)
    tasks = [asyncio.create_task(lines_of(history)) for _ in range(2)]
    await eventually(lambda: _active(windmill, 1))
    tasks[0].cancel()
    await asyncio.sleep(0.3)
    assert await _active(windmill, 1), "somebody still waits"
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await eventually(lambda: _active(windmill, 0))
    database.close()


async def _active(windmill: Connection, number: int) -> bool:
    return len([row for row in await sessions_of(windmill) if row["state"] == "active"]) == number


async def test_a_locked_table_is_an_error_within_the_deadline_and_not_for_longer(
    database: Database, windmill: Connection
) -> None:
    """Field case F15: requests queue for the one connection that they may use."""
    history = History(database, 3.0)
    lock = windmill.transaction()
    await lock.start()
    await windmill.execute("LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
    async with asyncio.timeout(10):
        results = await asyncio.gather(
            *(lines_of(history, slots=20 + number) for number in range(50)), return_exceptions=True
        )
    assert all(isinstance(result, DatabaseError) for result in results)
    assert any(isinstance(result, DatabaseTimeout) for result in results)
    await lock.rollback()
    assert await lines_of(history) == {}


async def test_the_loops_keep_a_connection_while_requests_wait(database: Database, windmill: Connection) -> None:
    history = History(database, 3.0)
    lock = windmill.transaction()
    await lock.start()
    await windmill.execute("LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
    asked = [asyncio.create_task(lines_of(history, slots=20 + number)) for number in range(10)]
    await eventually(lambda: _waiting(windmill, 1))
    async with asyncio.timeout(1), database.transaction("a loop"):
        pass
    await asyncio.gather(*asked, return_exceptions=True)
    await lock.rollback()


async def test_closing_ends_what_is_under_way(database: Database, windmill: Connection) -> None:
    history = History(database)
    lock = windmill.transaction()
    await lock.start()
    await windmill.execute("LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
    asked = asyncio.create_task(lines_of(history))
    await eventually(lambda: _waiting(windmill, 1))
    await history.close()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await lock.rollback()


async def test_a_refused_capability_costs_no_statement(windmill_url: str) -> None:
    async def refuse() -> None:
        raise DatabaseError("metrics is missing", reason="missing_table")

    async def connect() -> Connection:
        raise AssertionError("connected")

    history = History(Database(connect, DatabaseConfig()), require=refuse)
    for ask in (history.tags, history.stored, lambda: lines_of(history)):
        with pytest.raises(DatabaseError, match="metrics is missing"):
            await ask()


async def test_a_server_that_ends_the_query_is_asked_once_more(history: History, windmill: Connection) -> None:
    """A failover or a restart in the middle of a request is not the client's trouble."""
    await add_sample(windmill, "queue_count_a", "4", 100)
    lock = windmill.transaction()
    await lock.start()
    await windmill.execute("LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
    asked = asyncio.create_task(lines_of(history))
    await eventually(lambda: _waiting(windmill, 1))
    [first] = await sessions_of(windmill)
    await windmill.execute("SELECT pg_terminate_backend($1)", first["pid"])
    await eventually(lambda: _another_waits(windmill, first["pid"]))
    await lock.rollback()
    assert set(await asked) == {(Kind.COUNT, "a")}


async def _another_waits(windmill: Connection, pid: int) -> bool:
    await windmill.execute("SELECT pg_stat_clear_snapshot()")
    return any(row["pid"] != pid and row["wait_event_type"] == "Lock" for row in await sessions_of(windmill))


async def test_lines_are_drawn_in_flat_memory(history: History, windmill: Connection) -> None:
    """A tenth of 1,000 tags takes less than a tenth of 64 MB, which tuples of numbers would not."""
    await windmill.execute(
        """
        INSERT INTO metrics (id, value, created_at)
        SELECT 'queue_' || kind || '_' || tag, to_jsonb((n * 7919 + tag) % 97), now() - n * interval '240 seconds'
          FROM generate_series(1, 360) AS n, generate_series(1, 100) AS tag, unnest('{count,delay}'::text[]) AS kind
        """
    )
    await lines_of(history, tags=["1"])
    tracemalloc.start()
    try:
        drawn = await history.series(RequestedWindow(), slots=120, kinds=KINDS, tags=None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(line.vertices) for line in drawn.lines) > 70_000
    assert peak < 6_400_000
