"""Pulling on real PostgreSQL: the order, the capped left out, the fallback, and never one job twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.database.database import Connection
from exporter.fairness.dispatch import Dispatcher, Pull, PulledJob, choose_pull
from exporter.fairness.values import ADMIT_ALL_PPM, Payload

NOBODY = Payload()
CAPPED = Payload(("noisy",), 518)
REFUSED = 9999
ADMITTED = 0

HOSTILE = (
    "it's",
    'dou"ble',
    "a,b",
    "{curly}",
    "back\\slash",
    "new\nline",
    "tab\t",
    "NULL",
    "",
    "%s {schema} $1",
    "日本語 🜁",
    "queue_count_",
    "x" * 255,
    "é" * 255,
)


async def enqueue(
    connection: Connection,
    workspace: str = "quiet",
    tag: str = "deno",
    *,
    due_seconds_ago: float = 10,
    priority: int | None = None,
) -> UUID:
    """One waiting job as Windmill writes it; its row in v2_job carries the 50 characters that fit there."""
    job_id = uuid4()
    await connection.execute(
        "INSERT INTO v2_job (id, workspace_id, tag) VALUES ($1, $2, $3)", job_id, workspace, tag[:50]
    )
    await connection.execute(
        """INSERT INTO v2_job_queue (id, workspace_id, tag, priority, scheduled_for)
           VALUES ($1, $2, $3, $4, now() - $5::interval)""",
        job_id,
        workspace,
        tag,
        priority,
        timedelta(seconds=due_seconds_ago),
    )
    await connection.execute("INSERT INTO v2_job_runtime (id, ping) VALUES ($1, NULL)", job_id)
    return job_id


async def pull(
    connection: Connection,
    payload: Payload = NOBODY,
    *,
    levels: Sequence[Sequence[str]] = (("deno",),),
    draw: int = REFUSED,
    age_seconds: float | None = 1.0,
) -> PulledJob | None:
    return await Dispatcher().pull(connection, levels, payload, age_seconds, draw)


async def pulled_workspaces(connection: Connection, payload: Payload, *, draw: int) -> list[str]:
    """Whose jobs come out until the queue is empty."""
    workspaces = []
    while (job := await pull(connection, payload, draw=draw)) is not None:
        workspaces.append(job.workspace)
    return workspaces


class TestTheChoice:
    @given(st.integers(0, 9999))
    def test_with_nobody_capped_every_draw_runs_the_standard_pull(self, draw: int) -> None:
        assert choose_pull(Payload((), 5500), 1.0, draw) is Pull.STANDARD

    @given(st.integers(0, ADMIT_ALL_PPM))
    def test_exactly_ppm_of_ten_thousand_draws_admit(self, ppm: int) -> None:
        payload = Payload(("noisy",), ppm)
        edge = [draw for draw in (0, ppm - 1, ppm, 9999) if 0 <= draw <= 9999]
        for draw in edge:
            expected = Pull.STANDARD if draw < ppm else Pull.FAIRNESS
            assert choose_pull(payload, 1.0, draw) is expected

    def test_518_in_ten_thousand_are_518_of_all_draws(self) -> None:
        choices = Counter(choose_pull(CAPPED, 1.0, draw) for draw in range(10_000))
        assert choices == {Pull.STANDARD: 518, Pull.FAIRNESS: 9482}

    @pytest.mark.parametrize(
        ("age_seconds", "expected"),
        [(0.0, Pull.FAIRNESS), (60.0, Pull.FAIRNESS), (60.001, Pull.STANDARD), (None, Pull.STANDARD)],
    )
    def test_a_decision_older_than_a_minute_holds_nobody_back(self, age_seconds: float | None, expected: Pull) -> None:
        assert choose_pull(Payload(("noisy",), 0), age_seconds, REFUSED) is expected


class TestTheOrder:
    async def test_priority_comes_first_and_none_last(self, windmill: Connection) -> None:
        none = await enqueue(windmill, due_seconds_ago=100)
        low = await enqueue(windmill, priority=1, due_seconds_ago=50)
        high = await enqueue(windmill, priority=9, due_seconds_ago=1)
        negative = await enqueue(windmill, priority=-1, due_seconds_ago=200)
        order = [job.id for _ in range(4) if (job := await pull(windmill))]
        assert order == [high, low, negative, none]

    async def test_then_the_job_that_is_due_longest(self, windmill: Connection) -> None:
        late = await enqueue(windmill, due_seconds_ago=5)
        early = await enqueue(windmill, due_seconds_ago=50)
        order = [job.id for _ in range(2) if (job := await pull(windmill))]
        assert order == [early, late]

    async def test_a_job_is_due_the_moment_it_is_scheduled_for(self, windmill: Connection) -> None:
        """The three seconds of the backlog's definition have no place here."""
        await enqueue(windmill, due_seconds_ago=-60)
        assert await pull(windmill) is None
        due = await enqueue(windmill, due_seconds_ago=0)
        job = await pull(windmill)
        assert job is not None
        assert job.id == due

    async def test_foreign_tags_and_running_jobs_are_no_candidates(self, windmill: Connection) -> None:
        await enqueue(windmill, tag="python3")
        taken = await enqueue(windmill)
        await windmill.execute("UPDATE v2_job_queue SET running = true WHERE id = $1", taken)
        assert await pull(windmill) is None

    async def test_a_worker_without_tags_takes_nothing(self, windmill: Connection) -> None:
        await enqueue(windmill)
        assert await pull(windmill, levels=[[]]) is None
        assert await pull(windmill, levels=[]) is None


class TestTheMark:
    async def test_a_pulled_job_runs_from_now_and_has_pinged(self, windmill: Connection) -> None:
        job_id = await enqueue(windmill)
        async with windmill.transaction():
            job = await pull(windmill)
            row = await windmill.fetchrow(
                """SELECT running, started_at = now() AS started_now, ping = now() AS pinged_now, suspend_until
                     FROM v2_job_queue JOIN v2_job_runtime USING (id) WHERE id = $1""",
                job_id,
            )
        assert job is not None
        assert row is not None
        assert dict(row) == {"running": True, "started_now": True, "pinged_now": True, "suspend_until": None}

    async def test_a_job_that_goes_on_keeps_its_start_and_loses_its_suspension(self, windmill: Connection) -> None:
        job_id = await enqueue(windmill)
        await windmill.execute(
            """UPDATE v2_job_queue SET started_at = '2026-01-01T00:00:00Z', suspend_until = now() + interval '1 day'
                WHERE id = $1""",
            job_id,
        )
        job = await pull(windmill)
        assert job is not None
        assert job.started_at.isoformat() == "2026-01-01T00:00:00+00:00"
        assert await windmill.fetchval("SELECT suspend_until FROM v2_job_queue") is None

    async def test_a_job_without_a_runtime_row_is_pulled_all_the_same(self, windmill: Connection) -> None:
        job_id = await enqueue(windmill)
        await windmill.execute("DELETE FROM v2_job_runtime")
        job = await pull(windmill)
        assert job is not None
        assert job.id == job_id

    async def test_a_rolled_back_pull_gives_the_job_back(self, windmill: Connection) -> None:
        job_id = await enqueue(windmill)
        transaction = windmill.transaction()
        await transaction.start()
        assert await pull(windmill) is not None
        await transaction.rollback()
        job = await pull(windmill)
        assert job is not None
        assert job.id == job_id


class TestFairness:
    async def test_a_refused_draw_leaves_the_capped_out_until_only_they_wait(self, windmill: Connection) -> None:
        for _ in range(3):
            await enqueue(windmill, "noisy", due_seconds_ago=100)
        for _ in range(2):
            await enqueue(windmill, "quiet", due_seconds_ago=1)
        assert await pulled_workspaces(windmill, CAPPED, draw=REFUSED) == ["quiet"] * 2 + ["noisy"] * 3

    async def test_an_admitted_draw_takes_whoever_is_first(self, windmill: Connection) -> None:
        await enqueue(windmill, "noisy", due_seconds_ago=100)
        await enqueue(windmill, "quiet", due_seconds_ago=1)
        assert await pulled_workspaces(windmill, CAPPED, draw=ADMITTED) == ["noisy", "quiet"]

    async def test_a_capped_job_of_high_priority_waits_too(self, windmill: Connection) -> None:
        await enqueue(windmill, "noisy", priority=100)
        await enqueue(windmill, "quiet")
        assert await pulled_workspaces(windmill, CAPPED, draw=REFUSED) == ["quiet", "noisy"]

    async def test_all_levels_are_tried_for_the_others_before_a_capped_job_is_taken(self, windmill: Connection) -> None:
        await enqueue(windmill, "noisy", "high")
        await enqueue(windmill, "quiet", "low")
        levels = [["high"], ["low"]]
        first = await pull(windmill, CAPPED, levels=levels)
        second = await pull(windmill, CAPPED, levels=levels)
        assert first is not None
        assert second is not None
        assert (first.workspace, second.workspace) == ("quiet", "noisy")

    async def test_without_anybody_capped_the_higher_level_goes_first(self, windmill: Connection) -> None:
        await enqueue(windmill, tag="low", due_seconds_ago=100)
        await enqueue(windmill, tag="high", due_seconds_ago=1)
        job = await pull(windmill, levels=[["high"], ["low"]])
        assert job is not None
        assert job.tag == "high"

    async def test_a_stale_decision_lets_the_capped_go_first_again(self, windmill: Connection) -> None:
        await enqueue(windmill, "noisy", due_seconds_ago=100)
        await enqueue(windmill, "quiet", due_seconds_ago=1)
        job = await pull(windmill, CAPPED, draw=REFUSED, age_seconds=61)
        assert job is not None
        assert job.workspace == "noisy"

    async def test_sixty_four_capped_workspaces_are_all_left_out(self, windmill: Connection) -> None:
        capped = tuple(f"noisy-{number}" for number in range(64))
        for workspace in capped:
            await enqueue(windmill, workspace, due_seconds_ago=100)
        await enqueue(windmill, "quiet", due_seconds_ago=1)
        job = await pull(windmill, Payload(capped, 0))
        assert job is not None
        assert job.workspace == "quiet"


class TestHostileNames:
    @pytest.mark.parametrize("tag", HOSTILE)
    async def test_a_tag_is_matched_as_it_is(self, windmill: Connection, tag: str) -> None:
        await enqueue(windmill, tag="other")
        job_id = await enqueue(windmill, tag=tag)
        job = await pull(windmill, CAPPED, levels=[[*HOSTILE]])
        assert job is not None
        assert (job.id, job.tag) == (job_id, tag)

    async def test_a_thousand_tags_are_one_pull(self, windmill: Connection) -> None:
        await enqueue(windmill, tag="tag-999")
        job = await pull(windmill, levels=[[f"tag-{number}" for number in range(1000)]])
        assert job is not None

    async def test_capped_workspaces_are_matched_as_they_are(self, windmill: Connection) -> None:
        names = tuple(name[:50] for name in HOSTILE)
        for name in names:
            await enqueue(windmill, name, due_seconds_ago=100)
        quiet = await enqueue(windmill, "quiet", due_seconds_ago=1)
        job = await pull(windmill, Payload(names, 0))
        assert job is not None
        assert job.id == quiet

    async def test_a_schema_with_a_quote_in_its_name_is_pulled_from(self, windmill: Connection) -> None:
        await windmill.execute('CREATE SCHEMA "it""s"')
        for table in ("v2_job_queue", "v2_job_runtime"):
            await windmill.execute(f'CREATE TABLE "it""s".{table} (LIKE public.{table} INCLUDING ALL)')
        assert await Dispatcher('it"s').pull(windmill, [["deno"]], NOBODY, None, 0) is None


class TestConcurrentPullers:
    async def test_twenty_pullers_take_every_job_once(self, windmill: Connection, windmill_url: str) -> None:
        expected = [
            await enqueue(windmill, workspace, due_seconds_ago=100 + number)
            for number, workspace in enumerate(["noisy", "quiet"] * 100)
        ]

        async def puller(draw: int) -> list[UUID]:
            connection = await asyncpg.connect(windmill_url)
            taken = []
            while (job := await pull(connection, CAPPED, draw=draw)) is not None:
                taken.append(job.id)
            await connection.close()
            return taken

        takings = await asyncio.gather(*[puller(ADMITTED if number % 2 else REFUSED) for number in range(20)])
        taken = [job_id for taking in takings for job_id in taking]
        assert sorted(taken) == sorted(expected)
        assert sum(1 for taking in takings if taking) > 1

    async def test_a_job_locked_by_another_puller_is_passed_over(self, windmill: Connection, windmill_url: str) -> None:
        first = await enqueue(windmill, due_seconds_ago=100)
        second = await enqueue(windmill, due_seconds_ago=1)
        other = await asyncpg.connect(windmill_url)
        async with other.transaction():
            locked = await pull(other)
            passed = await pull(windmill)
        await other.close()
        assert locked is not None
        assert passed is not None
        assert (locked.id, passed.id) == (first, second)
