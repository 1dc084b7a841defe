"""The one pass over the queue, on real PostgreSQL."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporter.database.database import Connection, Database
from exporter.queue.reading import WholeQueue
from exporter.queue.statements import BACKLOG, READ_PLANNER
from exporter.queue.values import TagReading, WorkspaceWait
from tests.queue.plans import indexes, plan_of, scans
from tests.queue.scene import HOSTILE_NAMES, Job, add_jobs, add_worker, queue_of

jobs = st.builds(
    Job,
    tag=st.sampled_from(["deno", "bun", "gpu", "gpu-a100"]),
    due=st.sampled_from([-3600, -1, 0, 2, 4, 5, 10, 10, 900, 10**6]),
    running=st.booleans(),
    priority=st.sampled_from([None, None, -5, 0, 1, 1, 99, 32767]),
    workspace=st.sampled_from(["a", "b", "c"]),
    suspended=st.booleans(),
)


async def counted_by_hand(connection: Connection, now: float) -> tuple[set[TagReading], set[WorkspaceWait]]:
    """The specification in plain Python, over the raw rows."""
    rows = await connection.fetch(
        "SELECT tag, workspace_id, priority, running, date_part('epoch', scheduled_for) AS due FROM v2_job_queue"
    )
    waiting = [row for row in rows if not row["running"] and row["due"] <= now - 3]
    running = Counter(row["tag"] for row in rows if row["running"])
    workers = await connection.fetch("SELECT custom_tags FROM worker_ping WHERE ping_at > now() - interval '1 minute'")
    tags = set()
    for tag in {row["tag"] for row in waiting} | set(running):
        own = [row for row in waiting if row["tag"] == tag]
        ranked = sorted(own, key=lambda row: (row["priority"] is None, -(row["priority"] or 0), row["due"]))
        serving = sum(tag in row["custom_tags"] for row in workers)
        tags.add(TagReading(tag, len(own), ranked[0]["due"] if ranked else None, running[tag], serving))
    workspaces = set()
    for workspace in {row["workspace_id"] for row in waiting}:
        dues = [row["due"] for row in waiting if row["workspace_id"] == workspace]
        workspaces.add(WorkspaceWait(workspace, len(dues), min(dues)))
    return tags, workspaces


def tag_of(queue: WholeQueue, name: str) -> TagReading:
    [tag] = [one for one in queue.tags if one.tag == name]
    return tag


async def test_an_empty_queue_still_has_a_time(database: Database, windmill: Connection) -> None:
    queue = await queue_of(database)
    now = await windmill.fetchval("SELECT date_part('epoch', clock_timestamp())")
    assert (queue.tags, queue.workspaces) == ((), ())
    assert now - 60 < queue.read_at <= now


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(queued=st.lists(jobs, max_size=40), served=st.lists(st.sets(st.sampled_from(["deno", "gpu"])), max_size=4))
async def test_the_pass_finds_what_the_specification_says(
    queued: list[Job], served: list[set[str]], database: Database, windmill: Connection
) -> None:
    await windmill.execute("TRUNCATE v2_job_queue CASCADE; TRUNCATE worker_ping")
    await add_jobs(windmill, *queued)
    for number, listed in enumerate(served):
        await add_worker(windmill, f"worker {number}", sorted(listed))
    queue = await queue_of(database)
    tags, workspaces = await counted_by_hand(windmill, queue.read_at)
    assert (set(queue.tags), set(queue.workspaces)) == (tags, workspaces)
    assert (len(queue.tags), len(queue.workspaces)) == (len(tags), len(workspaces))


async def test_many_tags_and_workspaces_are_counted_right(database: Database, windmill: Connection) -> None:
    await windmill.execute(
        """
        INSERT INTO v2_job_queue (id, workspace_id, scheduled_for, running, tag, priority)
        SELECT gen_random_uuid(), 'ws ' || (random() * 100)::int, now() - random() * interval '1 hour',
               random() < 0.2, 'tag ' || (random() * 500)::int, CASE WHEN random() < 0.3 THEN (random() * 5)::int END
          FROM generate_series(1, 6000)
        """
    )
    queue = await queue_of(database)
    assert (set(queue.tags), set(queue.workspaces)) == await counted_by_hand(windmill, queue.read_at)


async def test_waiting_is_due_for_more_than_3_s_and_not_running(database: Database, windmill: Connection) -> None:
    """Field case F41: of six jobs two wait, and the delay is that of the prioritised one."""
    await add_jobs(
        windmill,
        Job(due=2),
        Job(due=4),
        Job(due=-3600),
        Job(due=500, running=True),
        Job(due=900, running=True, suspended=True),
        Job(due=10, priority=1),
    )
    queue = await queue_of(database)
    tag = tag_of(queue, "deno")
    assert (tag.waiting, tag.running) == (2, 2)
    assert tag.head_since is not None
    assert queue.read_at - tag.head_since == pytest.approx(10, abs=2)


async def test_the_head_is_the_next_pulls_choice_and_not_the_longest_wait(
    database: Database, windmill: Connection
) -> None:
    await add_jobs(windmill, Job(due=1000), Job(due=500, priority=0), Job(due=20, priority=7), Job(due=30, priority=7))
    queue = await queue_of(database)
    head = tag_of(queue, "deno").head_since
    assert head is not None
    assert queue.read_at - head == pytest.approx(30, abs=2)
    [workspace] = queue.workspaces
    assert queue.read_at - workspace.waiting_since == pytest.approx(1000, abs=2)


async def test_the_head_is_exact_to_the_microsecond(database: Database, windmill: Connection) -> None:
    await windmill.execute(
        "INSERT INTO v2_job_queue (id, workspace_id, scheduled_for, tag)"
        " VALUES (gen_random_uuid(), 'demo', '2024-05-06 07:08:09.123457+00', 'deno')"
    )
    assert tag_of(await queue_of(database), "deno").head_since == 1714979289.123457


async def test_a_job_scheduled_ahead_of_the_database_is_no_backlog(database: Database, windmill: Connection) -> None:
    """Field case F60."""
    await add_jobs(windmill, Job(due=-20))
    assert (await queue_of(database)).tags == ()


async def test_infinite_and_absurd_times_hurt_nobody(database: Database, windmill: Connection) -> None:
    for tag, moment, running in [
        ("never", "infinity", False),
        ("always", "-infinity", False),
        ("ancient", "4713-01-01 BC", False),
        ("running", "infinity", True),
    ]:
        await windmill.execute(
            "INSERT INTO v2_job_queue (id, workspace_id, scheduled_for, running, tag)"
            " VALUES (gen_random_uuid(), 'demo', $1::text::timestamptz, $2, $3)",
            moment,
            running,
            tag,
        )
    await add_jobs(windmill, Job())
    queue = await queue_of(database)
    heads = {one.tag: one.head_since for one in queue.tags}
    assert heads.keys() == {"always", "ancient", "running", "deno"}
    assert (heads["always"], heads["ancient"], heads["running"]) == (0, 0, None)
    assert [(one.waiting, one.waiting_since) for one in queue.workspaces] == [(3, 0)]


async def test_hostile_names_come_back_as_they_are(database: Database, windmill: Connection) -> None:
    await add_jobs(windmill, *(Job(tag=name, workspace=name[:50]) for name in HOSTILE_NAMES), Job(tag="t" * 255))
    await add_worker(windmill, "all", list(HOSTILE_NAMES))
    queue = await queue_of(database)
    assert {one.tag: one.workers for one in queue.tags} == {**dict.fromkeys(HOSTILE_NAMES, 1), "t" * 255: 0}
    assert {one.workspace for one in queue.workspaces} == {name[:50] for name in HOSTILE_NAMES} | {"demo"}


async def test_a_worker_serves_the_tags_that_it_lists_exactly(database: Database, windmill: Connection) -> None:
    """Field case F49: `gpu` is not served by a worker with `gpu-a100`, nor by one that pinged 70 s ago."""
    await add_jobs(windmill, Job(tag="gpu"), Job(tag="deno"), Job(tag="bun"))
    await add_worker(windmill, "other", ["gpu-a100", "GPU", "gp", "deno"])
    await add_worker(windmill, "twice", ["deno", "deno", "deno"])
    await add_worker(windmill, "late", ["deno"], pinged=59)
    await add_worker(windmill, "dead", ["gpu", "deno", "bun"], pinged=70)
    await windmill.execute("UPDATE worker_ping SET custom_tags = custom_tags || NULL::text WHERE worker = 'other'")
    await windmill.execute("INSERT INTO worker_ping (worker, worker_instance) VALUES ('no tags', 'host')")
    await windmill.execute(
        "INSERT INTO worker_ping (worker, worker_instance, ping_at, custom_tags)"
        " VALUES ('for ever', 'host', 'infinity', '{bun}')"
    )
    queue = await queue_of(database)
    assert {one.tag: one.workers for one in queue.tags} == {"gpu": 0, "deno": 3, "bun": 0}


@pytest.mark.parametrize("analyzed", [True, False])
async def test_dead_workers_do_not_matter(analyzed: bool, database: Database, windmill: Connection) -> None:
    """Field case F50: 50,000 dead rows are never read, with statistics or without."""
    await windmill.execute("ALTER TABLE worker_ping SET (autovacuum_enabled = off)")
    await windmill.execute(
        "INSERT INTO worker_ping (worker, worker_instance, ping_at, custom_tags)"
        " SELECT 'dead ' || n, 'host', now() - interval '1 hour', '{deno}' FROM generate_series(1, 50000) AS n"
    )
    for number in range(40):
        await add_worker(windmill, f"live {number}", ["deno"])
    await add_jobs(windmill, Job())
    if analyzed:
        await windmill.execute("ANALYZE worker_ping")
    assert tag_of(await queue_of(database), "deno").workers == 40
    nodes = await plan_of(windmill, BACKLOG, planner=READ_PLANNER)
    assert "Seq Scan" not in {how for how, _ in scans(nodes, "worker_ping")}
    assert "worker_ping_on_ping_at" in indexes(nodes)
    rows = [node["Actual Rows"] for node in nodes if node.get("Relation Name") == "worker_ping"]
    assert max(rows) <= 40


async def test_the_queue_is_read_once_and_by_one_process(windmill: Connection) -> None:
    await windmill.execute(
        "INSERT INTO v2_job_queue (id, workspace_id, scheduled_for, tag, priority)"
        " SELECT gen_random_uuid(), 'ws ' || n % 50, now() - interval '1 minute', 'tag ' || n % 300, n % 4"
        "   FROM generate_series(1, 100000) AS n"
    )
    await windmill.execute("ANALYZE v2_job_queue")
    nodes = await plan_of(windmill, BACKLOG, planner=READ_PLANNER)
    assert len(scans(nodes, "v2_job_queue")) == 1
    assert not any(node["Node Type"].startswith("Gather") for node in nodes)
    assert sum(node.get("Temp Written Blocks", 0) for node in nodes) == 0
