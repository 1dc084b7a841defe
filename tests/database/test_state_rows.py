"""The claim elects one replica a cycle; the fence keeps a slow winner from writing over a later one."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest

from exporter.config import DatabaseConfig
from exporter.database.connect import Connector
from exporter.database.database import Connection, Database
from exporter.database.state_rows import claim, hold, write_value
from exporter.database.url import parse_url

NAME = "windmill_exporter_fairness"
EMPTY = '{"overloaded":[],"admission_ppm":10000}'


async def try_claim(database: Database, *, min_age_seconds: float = 2.0, missing: bool = False) -> datetime | None:
    return await claim(database, "claim", NAME, min_age_seconds=min_age_seconds, initial=EMPTY, missing=missing)


async def age_row(windmill: Connection, interval: str) -> None:
    await windmill.execute("UPDATE background_task_state SET updated_at = now() - $1::text::interval", interval)


async def stored(windmill: Connection) -> str:
    return str(await windmill.fetchval("SELECT value::text FROM background_task_state WHERE name = $1", NAME))


async def test_a_missing_row_is_made_stale_and_claimed_at_once(database: Database, windmill: Connection) -> None:
    assert await try_claim(database) is None
    fence = await try_claim(database, missing=True)
    assert fence == await windmill.fetchval("SELECT updated_at FROM background_task_state WHERE name = $1", NAME)
    assert await stored(windmill) == '{"overloaded": [], "admission_ppm": 10000}'


async def test_a_row_that_exists_is_never_overwritten_by_the_initial_value(
    database: Database, windmill: Connection
) -> None:
    await windmill.execute(
        "INSERT INTO background_task_state (name, value, updated_at) VALUES ($1, '1', 'epoch')", NAME
    )
    assert await try_claim(database, missing=True) is not None
    assert await stored(windmill) == "1"


async def test_a_fresh_row_cannot_be_claimed_until_it_is_old_enough(database: Database, windmill: Connection) -> None:
    await try_claim(database, missing=True)
    assert await try_claim(database) is None
    await age_row(windmill, "1.9 seconds")
    assert await try_claim(database) is None
    await age_row(windmill, "2 seconds")
    assert await try_claim(database) is not None


async def test_a_time_in_the_future_counts_as_stale(database: Database, windmill: Connection) -> None:
    await try_claim(database, missing=True)
    await age_row(windmill, "-1 hour")
    fence = await try_claim(database)
    assert fence is not None
    assert await windmill.fetchval("SELECT $1 <= clock_timestamp()", fence)


@pytest.mark.parametrize("missing", [True, False])
async def test_of_eight_replicas_one_wins_each_cycle(missing: bool, windmill_url: str, windmill: Connection) -> None:
    replicas = [
        Database(Connector(lambda: parse_url(windmill_url), DatabaseConfig()), DatabaseConfig()) for _ in range(8)
    ]
    if not missing:
        await try_claim(replicas[0], missing=True)
    for _ in range(20):
        await age_row(windmill, "10 seconds")
        fences = await asyncio.gather(*(try_claim(replica, missing=missing) for replica in replicas))
        assert sum(fence is not None for fence in fences) == 1
    for replica in replicas:
        replica.close()


async def test_a_lost_claim_changes_nothing_in_the_row(database: Database, windmill: Connection) -> None:
    await try_claim(database, missing=True)
    before = await windmill.fetchrow("SELECT xmin::text, ctid::text, updated_at FROM background_task_state")
    assert await try_claim(database) is None
    assert await windmill.fetchrow("SELECT xmin::text, ctid::text, updated_at FROM background_task_state") == before


async def test_other_rows_of_the_table_are_not_touched(database: Database, windmill: Connection) -> None:
    await windmill.execute("INSERT INTO background_task_state (name, value, updated_at) VALUES ('other', '1', 'epoch')")
    fence = await try_claim(database, missing=True)
    assert fence is not None
    async with database.transaction("write", read_only=False) as transaction:
        assert await hold(transaction, NAME, fence) is not None
        await write_value(transaction, NAME, "2")
    row = await windmill.fetchrow(
        "SELECT value::text, extract(epoch FROM updated_at) FROM background_task_state WHERE name = 'other'"
    )
    assert tuple(row or ()) == ("1", 0)


async def test_the_fence_lets_its_winner_write_once_per_claim(database: Database, windmill: Connection) -> None:
    fence = await try_claim(database, missing=True)
    assert fence is not None
    async with database.transaction("write", read_only=False) as transaction:
        assert await hold(transaction, NAME, fence) == '{"overloaded": [], "admission_ppm": 10000}'
        await write_value(transaction, NAME, '{"overloaded":["a"],"admission_ppm":518}')
    assert await stored(windmill) == '{"overloaded": ["a"], "admission_ppm": 518}'


async def test_a_slow_winner_is_fenced_out_by_a_later_claim(database: Database, windmill: Connection) -> None:
    slow = await try_claim(database, missing=True)
    await age_row(windmill, "10 seconds")
    later = await try_claim(database)
    assert slow is not None
    assert later is not None
    async with database.transaction("write", read_only=False) as transaction:
        assert await hold(transaction, NAME, slow) is None
        assert await hold(transaction, NAME, later) is not None


async def test_a_winner_that_holds_the_row_keeps_a_later_claim_waiting(
    database: Database, windmill: Connection
) -> None:
    """The write is short; a claim that arrives during it waits for the row and then takes the next cycle."""
    fence = await try_claim(database, missing=True)
    assert fence is not None
    async with database.transaction("write", read_only=False) as transaction:
        await hold(transaction, NAME, fence)
        rival = asyncio.create_task(try_claim(database, min_age_seconds=0.0))
        await asyncio.sleep(0.1)
        assert not rival.done()
        await write_value(transaction, NAME, "7")
    assert await rival is not None
    assert await stored(windmill) == "7"
