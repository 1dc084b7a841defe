"""Two replicas behind a real PgBouncer with stock settings, in either mode, and one that is killed behind it."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from benchmarks.pooled_load import left_behind, load
from exporter.demo.postgres import EmbeddedPostgres
from tests.database.pooler import pgbouncer
from tests.faults.scene import FLAGS, POOL_SIZE, WRITING, failed_for, scene_at
from tests.product import process, scrape, service

SECONDS = 4


def at_port(url: str, port: int) -> str:
    return f"postgresql://postgres@127.0.0.1:{port}/{url.rpartition('/')[2]}"


@pytest.mark.may_block("starts servers of its own")
async def test_transaction_mode_sees_no_error_and_keeps_nothing() -> None:
    """Field cases F01 and F03: the long load in short."""
    assert await load(SECONDS) == []


async def test_session_mode_needs_no_switch_either(windmill_url: str, template_loaded: EmbeddedPostgres) -> None:
    """Field case F03: two replicas with the sessions of their pools, and no startup parameter ignored."""
    with pgbouncer(template_loaded.port, pool_mode="session", pool_size=2 * POOL_SIZE) as port:
        url = at_port(windmill_url, port)
        async with scene_at(windmill_url) as scene, service(url, WRITING) as one, service(url, WRITING) as two:
            for _ in range(2):
                pages = await scene.settled(one.urls[0], two.urls[0])
                await scene.change()
            await scene.settled(one.urls[0], two.urls[0])
            assert set[str]().union(*map(failed_for, pages)) == set()
            await scene.sessions_bounded(replicas=2)


async def test_a_replica_killed_in_its_statement_costs_its_heir_one_attempt(
    windmill_url: str, template_loaded: EmbeddedPostgres
) -> None:
    """Field case F02: session mode, no reset query; the heir is given the sessions of the dead."""
    with pgbouncer(
        template_loaded.port, pool_mode="session", pool_size=POOL_SIZE, extra="server_reset_query ="
    ) as port:
        environment = {"DATABASE_URL": at_port(windmill_url, port)}
        async with scene_at(windmill_url) as scene:
            async with process(*FLAGS, environment=environment) as dying:
                await scene.settled(dying.url)
                async with scene.windmill.transaction():
                    await scene.windmill.execute("LOCK TABLE v2_job_queue IN ACCESS EXCLUSIVE MODE")
                    await asyncio.sleep(1.5)
                    dying.process.kill()
                    await dying.process.wait()
            await scene.change()
            async with process(*FLAGS, environment=environment) as heir:
                await scene.settled(heir.url)
                page = await scrape(heir.url)
                assert failed_for(page) <= {"connection_lost"}
                await scene.sessions_bounded()


async def test_the_check_for_what_is_left_behind_finds_it(postgres: EmbeddedPostgres) -> None:
    """So that an empty answer means something."""
    with pgbouncer(postgres.port, pool_size=POOL_SIZE) as port:
        assert await left_behind(port) == []
        client = await asyncpg.connect(
            host="127.0.0.1", port=port, user="postgres", database="postgres", statement_cache_size=0
        )
        await client.execute("SELECT pg_advisory_lock(1), set_config('statement_timeout', '77s', false)")
        await client.close()
        [found] = await left_behind(port)
    assert "statement_timeout=77000" in found
    assert "'locks': 1" in found
