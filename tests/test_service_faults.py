"""The whole product in trouble: what it says about it, how often, and what it leaves alone."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable

import pytest

from exporter.config import Config, FairnessConfig, QueueConfig
from exporter.database.database import Connection, Database
from exporter.errors import DatabaseUnavailable
from exporter.fairness.values import FairnessMode
from exporter.queue import sampler
from exporter.queue.values import QueueMode
from tests.product import Scrape, eventually, process, scrape, service, working
from tests.queue.scene import Job, add_jobs

WRITING = Config(
    fairness=FairnessConfig(mode=FairnessMode.ENFORCE), queue=QueueConfig(mode=QueueMode.SAMPLE, interval_seconds=1)
)
READING = Config(queue=QueueConfig(interval_seconds=1))
SESSIONS = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name LIKE 'windmill-exporter%'
"""


def told(caplog: pytest.LogCaptureFixture, condition: str) -> list[tuple[str, str]]:
    """Level and text of every line about a condition."""
    return [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if getattr(record, "condition", None) == condition
    ]


def failed(collector: str, reason: str) -> Callable[[Scrape], bool]:
    """A condition: the collector failed for this reason, and still fails."""
    counter = "windmill_exporter_collector_failures_total"
    return lambda page: (
        (page.value(counter, collector=collector, reason=reason) or 0) > 0 and not page.succeeds(collector)
    )


async def test_each_further_thing_that_goes_missing_is_named_with_what_cures_it(
    windmill: Connection, windmill_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Field case F31: also where the first is missing still, and at the first line already."""
    caplog.set_level("INFO", logger="exporter")
    async with service(windmill_url, READING) as running:
        await eventually(running.urls[0], working("fairness", "queue"))
        await windmill.execute("ALTER TABLE worker_ping RENAME TO gone")
        await eventually(running.urls[0], failed("queue", "missing_table"))
        await windmill.execute("ALTER TABLE metrics RENAME TO gone_too")
        async with asyncio.timeout(20):
            while len(told(caplog, "queue")) < 2:  # noqa: ASYNC110 -- the log has no event
                await asyncio.sleep(0.1)
        assert running.board.current.collector("queue") is not None
    first, second = told(caplog, "queue")
    missing = "does not exist: is this the database and the schema of Windmill?"
    assert first == ("WARNING", f"public.worker_ping {missing}")
    assert second == ("WARNING", f"public.worker_ping {missing}; public.metrics {missing}")


async def test_while_something_is_missing_it_is_not_asked_for_every_tick(
    windmill: Connection, windmill_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    real = Database.transaction

    def transaction(self: Database, purpose: str, **options: object) -> object:
        nonlocal asked
        asked += purpose == "capabilities"
        return real(self, purpose, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Database, "transaction", transaction)
    await windmill.execute("ALTER TABLE worker_ping RENAME TO gone")
    async with service(windmill_url, READING) as running:
        await eventually(running.urls[0], lambda page: _count(page, "queue", "missing_table") >= 6)
    assert asked <= 6  # two connections, and pauses of 1, 2 and 4 s


async def test_an_unforeseen_error_is_told_once_with_its_traceback_and_ends_nothing(
    windmill_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", logger="exporter")

    async def fail(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(sampler, "read_queue", fail)
    async with service(windmill_url, READING) as running:
        await eventually(running.urls[0], lambda page: _count(page, "queue", "statement_error") >= 3)
        await eventually(running.urls[0], working("fairness"))
        monkeypatch.undo()
        await eventually(running.urls[0], working("queue"))
    assert [level for level, _ in told(caplog, "queue")] == ["ERROR", "INFO"]
    [record] = [record for record in caplog.records if record.exc_info]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ZeroDivisionError)


@pytest.mark.parametrize(("reason", "up"), [("connection_lost", 0), ("pool_exhausted", 1)])
async def test_a_collector_that_fails_without_connecting_being_at_fault_says_so(
    windmill_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, reason: str, up: int
) -> None:
    """A full pool is our own doing and says nothing about the database."""
    caplog.set_level("INFO", logger="exporter")

    async def fail(*_: object) -> None:
        raise DatabaseUnavailable(f"queue read: {reason}", reason=reason)

    monkeypatch.setattr(sampler, "read_queue", fail)
    config = Config(fairness=FairnessConfig(mode=FairnessMode.OFF), queue=READING.queue)
    async with service(windmill_url, config) as running:
        page = await eventually(running.urls[0], lambda page: _count(page, "queue", reason) >= 2)
        assert page.value("windmill_exporter_up") == up
    assert told(caplog, "queue") == [("WARNING", f"queue read: {reason}")]


async def test_tags_that_are_too_long_are_told_once_by_a_fleet_that_takes_turns(
    windmill: Connection, windmill_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="exporter")
    await add_jobs(windmill, Job(tag="x" * 250, due=100))
    stored = "windmill_queue_samples_total"
    async with service(windmill_url, WRITING) as one:
        page = await eventually(one.urls[0], working("queue"))
        await asyncio.sleep(0.4)  # so that the two do not tick at the same moment, where the first always wins
        async with service(windmill_url, WRITING) as two, asyncio.timeout(30):
            skipped: list[float | None] = [0, 0]
            while not all(skipped):
                await windmill.execute("UPDATE background_task_state SET updated_at = 'epoch'")
                await asyncio.sleep(0.1)
                pages = [await scrape(each.urls[0]) for each in (one, two)]
                skipped = [each.value(stored, result="skipped_long_tag") for each in pages]
        assert page.value("windmill_queue_waiting_jobs", tag="x" * 250) == 1
    assert [level for level, _ in told(caplog, "long_tags")] == ["WARNING"] * 2


async def test_a_reading_that_nobody_renews_is_not_exported_however_often_it_is_seen(
    windmill: Connection, windmill_url: str
) -> None:
    """Some replica claims every cycle and dies in it: the others must not show its last reading for ever."""
    await add_jobs(windmill, Job(tag="gpu", due=100))
    config = Config(fairness=FairnessConfig(mode=FairnessMode.OFF), queue=WRITING.queue)
    async with service(windmill_url, config) as running:
        await eventually(running.urls[0], lambda page: page.value("windmill_queue_waiting_jobs", tag="gpu") == 1)
    await windmill.execute(
        "UPDATE background_task_state SET updated_at = 'epoch', "
        "value = jsonb_set(value, '{at}', to_jsonb((value ->> 'at')::numeric - 31)) "
        "WHERE name = 'windmill_exporter_queue'"
    )
    claim = "UPDATE background_task_state SET updated_at = clock_timestamp() WHERE name = 'windmill_exporter_queue'"
    await windmill.execute(claim)
    async with service(windmill_url, config) as running:
        for _ in range(20):
            await windmill.execute(claim)
            page = await scrape(running.urls[0])
            assert page.value("windmill_queue_waiting_jobs", tag="gpu") is None
            assert not page.succeeds("queue")
            await asyncio.sleep(0.1)
        assert running.board.current.queue is not None


async def test_a_table_that_is_locked_holds_up_one_session_and_one_collector(
    windmill: Connection, windmill_url: str
) -> None:
    """Field case F22: a migration locks the history; readers that come later wait behind one request at the most."""
    blocked = """
        SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
         WHERE NOT granted AND application_name LIKE 'windmill-exporter%' AND datname = current_database()
        """
    async with service(windmill_url, READING) as running:
        await eventually(running.urls[0], working("fairness", "queue"))
        transaction = windmill.transaction()
        await transaction.start()
        await windmill.execute("LOCK TABLE v2_job_completed IN ACCESS EXCLUSIVE MODE")
        most = 0
        began = time.monotonic()
        while time.monotonic() - began < 7:
            await windmill.execute("SELECT pg_stat_clear_snapshot()")
            most = max(most, await windmill.fetchval(blocked))
            await asyncio.sleep(0.05)
        page = await scrape(running.urls[0])
        assert most == 1
        assert failed("fairness", "lock_timeout")(page)
        assert page.succeeds("queue")
        assert page.value("windmill_exporter_up") == 1
        await transaction.rollback()
        await eventually(running.urls[0], working("fairness"))


async def test_a_limit_of_the_role_fails_the_collector_that_exceeds_it_and_no_other(
    windmill: Connection, windmill_url: str
) -> None:
    """Field case F23."""
    await windmill.execute(
        "CREATE ROLE limited LOGIN SUPERUSER; ALTER ROLE limited SET statement_timeout = '100ms';"
        "ALTER TABLE v2_job_completed RENAME TO history;"
        "CREATE VIEW v2_job_completed AS SELECT history.* FROM history, pg_sleep(0.5);"
        "INSERT INTO history (id, workspace_id, duration_ms, status, completed_at) "
        "VALUES (gen_random_uuid(), 'w', 1, 'success', now())"
    )
    try:
        async with service(windmill_url.replace("postgres@", "limited@"), READING) as running:
            page = await eventually(running.urls[0], failed("fairness", "statement_timeout"))
            page = await eventually(running.urls[0], working("queue"))
            assert page.value("windmill_exporter_up") == 1
    finally:
        await windmill.execute("DROP ROLE limited")


async def test_no_session_sits_in_a_transaction_while_it_does_something_else(
    windmill: Connection, windmill_url: str
) -> None:
    """Field case F21."""
    await windmill.execute("INSERT INTO global_settings (name, value) VALUES ('workspace_fairness_enabled', 'true')")
    await add_jobs(windmill, *(Job(tag=f"tag {number}", due=100) for number in range(200)))
    idle = """
        SELECT max(clock_timestamp() - state_change) FROM pg_stat_activity
         WHERE state LIKE 'idle in transaction%' AND application_name LIKE 'windmill-exporter%'
        """
    async with service(windmill_url, WRITING) as one, service(windmill_url, WRITING), service(windmill_url, WRITING):
        await eventually(one.urls[0], working("fairness", "queue"))
        longest = 0.0
        for _ in range(60):
            seconds = await windmill.fetchval(f"SELECT date_part('epoch', ({idle}))")
            longest = max(longest, seconds or 0.0)
            await asyncio.sleep(0.05)
    assert longest < 1


async def test_sigterm_while_the_database_makes_it_wait_ends_it_all_the_same(
    windmill: Connection, windmill_url: str
) -> None:
    """Field case F25."""
    async with process("--queue.interval-seconds=1", environment={"DATABASE_URL": windmill_url}) as product:
        await eventually(product.url, working("fairness", "queue"))
        transaction = windmill.transaction()
        await transaction.start()
        await windmill.execute("LOCK TABLE v2_job_queue IN ACCESS EXCLUSIVE MODE")
        waiting = f"{SESSIONS} AND wait_event_type = 'Lock'"
        async with asyncio.timeout(10):
            while not await windmill.fetchval(waiting):
                await windmill.execute("SELECT pg_stat_clear_snapshot()")
                await asyncio.sleep(0.02)
        product.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(product.process.wait(), 10) == 0
        async with asyncio.timeout(10):
            while await windmill.fetchval(SESSIONS):
                await windmill.execute("SELECT pg_stat_clear_snapshot()")
                await asyncio.sleep(0.05)
        await transaction.rollback()
    assert "Traceback" not in product.log


def _count(page: Scrape, collector: str, reason: str) -> float:
    return page.value("windmill_exporter_collector_failures_total", collector=collector, reason=reason) or 0
