"""The endpoints of the queue: shapes, errors, and who waits for whom, over the real product."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from aiohttp import ClientSession

from exporter.config import Config, DatabaseConfig, QueueConfig, WebConfig
from exporter.database.database import Connection
from exporter.queue.values import QueueMode
from exporter.snapshot import Board
from tests.database.targets import eventually, sessions_of
from tests.metrics.scenes import MONOTONIC, queue, snapshot, tag
from tests.product import eventually as scraped
from tests.product import service, working
from tests.queue.scene import HOSTILE_NAMES, Job, add_jobs, add_sample, add_worker
from tests.web.serving import Service, listening, plain_client

FROM_DATABASE = (
    "/api/workers/queue_metrics_series",
    "/api/workers/queue_metrics",
    "/api/workers/workspace_fairness_events",
    "/api/queue/points",
    "/api/queue/grid",
)
FROM_MEMORY = (
    "/api/workers/queue_status",
    "/api/workers/queue_counts",
    "/api/workers/queue_running_counts",
    "/api/queue/current",
)


@pytest.fixture
async def product(windmill_url: str) -> AsyncIterator[str]:
    """URL of the running product."""
    async with service(windmill_url) as running:
        yield running.urls[0]


def refuse(text: str) -> float:
    raise AssertionError(f"{text} in an answer")


async def fetch(url: str, status: int = 200) -> Any:
    """The JSON at `url`, in which neither NaN nor Infinity may stand."""
    async with ClientSession() as session, session.get(url) as response:
        text = await response.text()
        assert response.status == status, text
        assert response.content_type == "application/json"
        return json.loads(text, parse_constant=refuse)


async def add_climb_and_drop(windmill: Connection, name: str = "gpu") -> None:
    """A count that steps and drains, and a delay that climbs and drops within the last hour."""
    for age, value in ((3000, "3"), (2700, "7"), (2400, "0")):
        await add_sample(windmill, f"queue_count_{name}", value, age)
    since = await windmill.fetchval("SELECT date_part('epoch', now()) - 3100")
    for age, value in ((3000, "100"), (2700, f'{{"since": {since}}}'), (2400, "0")):
        await add_sample(windmill, f"queue_delay_{name}", value, age)


async def test_the_series_in_windmills_shape(product: str, windmill: Connection) -> None:
    await add_climb_and_drop(windmill)
    await add_sample(windmill, "queue_count_a", "2", 100)
    answer = await fetch(f"{product}/api/workers/queue_metrics_series?window_secs=7200")
    assert answer["to"] - answer["from"] == 7_200_000
    assert [one["tag"] for one in answer["tags"]] == ["a", "gpu"]
    assert answer["tags"][0]["delay"] == []
    gpu = answer["tags"][1]
    assert [value for _, value in gpu["count"]] == [0, 3, 3, 7, 7, 0, 0]
    assert max(value for _, value in gpu["delay"]) == pytest.approx(700, abs=2), "the top of the climb"
    assert all(isinstance(time, int) for line in (gpu["count"], gpu["delay"]) for time, _ in line)
    assert all(answer["from"] <= time <= answer["to"] for time, _ in gpu["count"] + gpu["delay"])
    assert any(left[0] == right[0] for left, right in itertools.pairwise(gpu["count"])), "a vertical shares its time"


async def test_nudged_series_rise_strictly_and_keep_every_value(product: str, windmill: Connection) -> None:
    await add_climb_and_drop(windmill)
    exact = await fetch(f"{product}/api/workers/queue_metrics_series?window_secs=7200")
    window = f"from={exact['from']}&to={exact['to']}"
    exact = await fetch(f"{product}/api/workers/queue_metrics_series?{window}")
    nudged = await fetch(f"{product}/api/workers/queue_metrics_series?{window}&ties=nudge")
    for before, after in zip(exact["tags"], nudged["tags"], strict=True):
        for kind in ("count", "delay"):
            times = [time for time, _ in after[kind]]
            assert all(left < right for left, right in itertools.pairwise(times))
            assert [value for _, value in before[kind]] == [value for _, value in after[kind]]
            assert times[-1] == before[kind][-1][0]


async def test_stored_rows_in_windmills_shape(product: str, windmill: Connection) -> None:
    await add_climb_and_drop(windmill)
    await add_sample(windmill, "queue_count_gpu", '"unreadable"', 10)
    await add_sample(windmill, "queue_delay_ahead", '{"since": 1e12}', 10)
    answer = await fetch(f"{product}/api/workers/queue_metrics")
    assert [one["id"] for one in answer] == ["queue_count_gpu", "queue_delay_ahead", "queue_delay_gpu"]
    assert [row["value"] for row in answer[0]["values"]] == [3, 7, 0]
    assert [row["value"] for row in answer[1]["values"]] == [0], "never below 0"
    stored = await windmill.fetchval(
        "SELECT to_char(min(created_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM metrics"
    )
    assert answer[0]["values"][0]["created_at"] == stored


async def test_events_in_windmills_shape(product: str, windmill: Connection) -> None:
    await windmill.execute(
        "INSERT INTO audit_partitioned (workspace_id, username, operation, action_kind, resource, parameters)"
        " VALUES ('admins', 'system', 'workspace_fairness.capped', 'update', 'noisy', '{\"max_percent\": \"50\"}'),"
        " ('admins', 'system', 'workspace_fairness.uncapped', 'update', 'noisy', NULL)"
    )
    newest, oldest = await fetch(f"{product}/api/workers/workspace_fairness_events")
    assert (newest["operation"], newest["parameters"]) == ("workspace_fairness.uncapped", None)
    assert (oldest["operation"], oldest["workspace_id"]) == ("workspace_fairness.capped", "noisy")
    assert oldest["parameters"] == {"max_percent": "50"}
    assert oldest["timestamp"].endswith("Z")


async def test_the_queue_now(windmill_url: str, windmill: Connection) -> None:
    await add_jobs(windmill, Job(tag="gpu", due=100), number=3)
    await add_jobs(windmill, Job(tag="gpu", running=True), Job(tag="busy", running=True))
    await add_worker(windmill, "w1", ["gpu"])
    async with service(windmill_url) as running:
        url = running.urls[0]
        await scraped(url, working("queue"))
        busy, gpu = await fetch(f"{url}/api/workers/queue_status")
        assert busy == {"tag": "busy", "waiting": 0, "running": 1, "workers": 0}, "no delay without a backlog"
        assert gpu.pop("delay") == pytest.approx(100, abs=15)
        assert gpu == {"tag": "gpu", "waiting": 3, "running": 1, "workers": 1}
        assert await fetch(f"{url}/api/workers/queue_counts") == {"gpu": 3}
        assert await fetch(f"{url}/api/workers/queue_running_counts") == {"busy": 1, "gpu": 1}
        rows = await fetch(f"{url}/api/queue/current")
        assert [(row["tag"], row["count"], row["running"], row["workers"]) for row in rows] == [
            ("busy", 0, 1, 0),
            ("gpu", 3, 1, 1),
        ]
        assert rows[0]["delay"] == 0
        now = await windmill.fetchval("SELECT date_part('epoch', now()) * 1000")
        assert rows[0]["time"] == pytest.approx(now, abs=30_000)
        assert [row["tag"] for row in await fetch(f"{url}/api/queue/current?tags=gpu,unknown")] == ["gpu"]


async def test_points_are_rows_by_time(product: str, windmill: Connection) -> None:
    await add_climb_and_drop(windmill, "b")
    await add_climb_and_drop(windmill, "a")
    for kind in ("count", "delay"):
        rows = await fetch(f"{product}/api/queue/points?series={kind}&tags=a,b")
        assert [(row["time"], row["tag"]) for row in rows] == sorted((row["time"], row["tag"]) for row in rows)
        for name in ("a", "b"):
            times = [row["time"] for row in rows if row["tag"] == name]
            assert all(left < right for left, right in itertools.pairwise(times))
    assert [row["value"] for row in rows if row["tag"] == "a"][-1] == 0
    assert {row["tag"] for row in await fetch(f"{product}/api/queue/points")} == {"a", "b"}
    assert {row["tag"] for row in await fetch(f"{product}/api/queue/points?tag=a")} == {"a"}
    assert await fetch(f"{product}/api/queue/points?tags=unknown") == []


async def test_a_grid_has_true_means(product: str, windmill: Connection) -> None:
    now = int(await windmill.fetchval("SELECT floor(date_part('epoch', now()))"))
    await windmill.execute(
        "INSERT INTO metrics (id, value, created_at) VALUES ('queue_count_a', '8', to_timestamp($1 - 900)),"
        " ('queue_count_a', '0', to_timestamp($1 - 600))",
        now,
    )
    begin, end = (now - 1200) * 1000, now * 1000
    rows = await fetch(f"{product}/api/queue/grid?series=count&step=600&from={begin}&to={end}")
    assert rows == [
        {"time": begin, "tag": "a", "mean": 4.0, "max": 8.0},
        {"time": begin + 600_000, "tag": "a", "mean": 0.0, "max": 0.0},
    ]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/workers/queue_metrics_series?from=abc", "from"),
        ("/api/workers/queue_metrics_series?window_secs=1h", "window_secs"),
        ("/api/workers/queue_metrics_series?ties=maybe", "ties"),
        ("/api/workers/queue_metrics_series?from=1700000000000&to=1600000000000", "from"),
        ("/api/queue/points?to=", "to"),
        ("/api/queue/points?series=both", "series"),
        ("/api/queue/grid?step=0", "step"),
        ("/api/queue/grid?step=1", "step"),
        ("/api/queue/grid?from=99999999999999", "from"),
    ],
)
async def test_what_cannot_be_is_400_by_its_name(product: str, path: str, field: str) -> None:
    answer = await fetch(product + path, 400)
    assert answer["message"].startswith(f"{field}: expected ")
    assert answer["error"] == {"code": "bad_request", "message": answer["message"]}


async def test_more_than_50_tags_on_a_grid_are_400(product: str, windmill: Connection) -> None:
    for number in range(51):
        await add_sample(windmill, f"queue_count_{number}", "1", 100)
    assert (await fetch(f"{product}/api/queue/grid", 400))["message"].startswith("tags: ")


async def test_hostile_tags_survive_the_way_out(product: str, windmill: Connection) -> None:
    names = [*HOSTILE_NAMES, "NaN", "</script>", "Infinity"]
    for name in names:
        await add_sample(windmill, f"queue_count_{name}", "1", 100)
    answer = await fetch(f"{product}/api/workers/queue_metrics_series")
    assert [one["tag"] for one in answer["tags"]] == sorted(names)
    assert {one["id"] for one in await fetch(f"{product}/api/workers/queue_metrics")} == {
        f"queue_count_{name}" for name in names
    }
    assert {row["tag"] for row in await fetch(f"{product}/api/queue/points")} == set(names)


async def test_nothing_stored_is_empty_everywhere(product: str) -> None:
    assert (await fetch(f"{product}/api/workers/queue_metrics_series"))["tags"] == []
    for path in FROM_DATABASE[1:]:
        assert await fetch(product + path) == []


@pytest.mark.parametrize("path", FROM_DATABASE)
async def test_without_a_database_it_is_503_with_a_sentence(client: ClientSession, path: str) -> None:
    async with client.get(path) as response:
        assert response.status == 503
        assert await response.json() == {
            "message": "there is no database",
            "error": {"code": "unreachable", "message": "there is no database"},
        }


@pytest.mark.parametrize("path", FROM_MEMORY)
async def test_a_reading_that_is_missing_or_old_is_503_with_the_reason(path: str) -> None:
    state = snapshot(None, queue([tag("gpu", 1)], observed_monotonic=MONOTONIC - 31))
    for shown, words in (
        (state, "too old to be shown"),
        (replace(state, queue=None), "was not read yet"),
        (replace(state, collectors=()), r"queue.mode is off"),
    ):
        web_service = Service(board=Board(shown))
        async with listening(web_service.app()) as listener, plain_client(listener) as client:
            async with client.get(path) as response:
                assert response.status == 503
                answer = await response.json()
            assert words in answer["message"]
            assert answer["error"]["code"] == "not_ready"


async def test_a_locked_table_is_503_in_time_and_over_at_once(windmill_url: str, windmill: Connection) -> None:
    """Field case F15. Liveness answers meanwhile."""
    config = Config(
        queue=QueueConfig(mode=QueueMode.OFF), web=WebConfig(history_deadline_seconds=4, listen_address="127.0.0.1:0")
    )
    async with service(windmill_url, config) as running:
        url = running.urls[0]
        await fetch(f"{url}/api/queue/points")
        lock = windmill.transaction()
        await lock.start()
        await windmill.execute("LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
        asked = [
            asyncio.create_task(fetch(f"{url}/api/queue/points?to={2_000_000_000_000 + number}", 503))
            for number in range(50)
        ]
        await eventually(lambda: waits(windmill))
        async with asyncio.timeout(15):
            while not all(task.done() for task in asked):
                assert (await fetch(f"{url}/-/healthy"))["status"] == "ok"
                await asyncio.sleep(0.05)
        assert all(task.result()["message"] for task in asked)
        await lock.rollback()
        await fetch(f"{url}/api/queue/points")


async def waits(windmill: Connection) -> bool:
    await windmill.execute("SELECT pg_stat_clear_snapshot()")
    return any(row["wait_event_type"] == "Lock" for row in await sessions_of(windmill, "windmill-exporter queue hist%"))


async def test_clients_that_hang_up_leave_nothing_running(windmill_url: str, windmill: Connection) -> None:
    """Two share one query; it goes on for the one that stays, and ends with the last."""
    patient = DatabaseConfig(lock_timeout_seconds=60)
    async with service(windmill_url, Config(database=patient, queue=QueueConfig(mode=QueueMode.OFF))) as running:
        url = running.urls[0]
        await fetch(f"{url}/api/queue/points")
        lock = windmill.transaction()
        await lock.start()
        await windmill.execute("LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE")
        sessions = [aiohttp.ClientSession() for _ in range(3)]
        asked = [asyncio.create_task(one.get(f"{url}/api/workers/queue_metrics_series")) for one in sessions]
        await eventually(lambda: waits(windmill))
        assert len(await sessions_of(windmill, "windmill-exporter queue hist%")) == 1
        for one in sessions[:2]:
            await hang_up(one, asked.pop(0))
        await asyncio.sleep(0.2)
        assert await waits(windmill)
        await hang_up(sessions[2], asked.pop(0))
        await eventually(lambda: is_gone(windmill), seconds=5)
        await lock.rollback()
        await fetch(f"{url}/api/queue/points")


async def hang_up(session: ClientSession, task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await session.close()


async def is_gone(windmill: Connection) -> bool:
    await windmill.execute("SELECT pg_stat_clear_snapshot()")
    return not await sessions_of(windmill, "windmill-exporter queue hist%")


async def test_liveness_answers_while_a_large_answer_is_drawn(windmill_url: str, windmill: Connection) -> None:
    """150 tags of two full lines each: the guard around each test fails when the loop is held for long."""
    await windmill.execute(
        """
        INSERT INTO metrics (id, value, created_at)
        SELECT 'queue_' || kind || '_' || tag, to_jsonb((n * 7919 + tag) % 97), now() - n * interval '240 seconds'
          FROM generate_series(1, 360) AS n, generate_series(1, 150) AS tag,
               unnest('{count,delay}'::text[]) AS kind
        """
    )
    async with service(windmill_url) as running:
        url = running.urls[0]
        asked = asyncio.create_task(fetch(f"{url}/api/workers/queue_metrics_series?window_secs=86400"))
        answered = 0
        async with ClientSession() as session:
            while not asked.done():
                async with session.get(f"{url}/-/healthy") as response:
                    assert response.status == 200
                answered += not asked.done()
        assert answered > 20
        answer = await asked
    assert len(answer["tags"]) == 150
    assert all(math.isfinite(value) for one in answer["tags"] for _, value in one["count"] + one["delay"])


async def test_a_full_answer_of_14_days_is_small(product: str, windmill: Connection) -> None:
    """Field case F51: under 600 vertices a series and 2 MB for 30 tags, however many rows are stored."""
    await windmill.execute(
        """
        INSERT INTO metrics (id, value, created_at)
        SELECT 'queue_count_' || tag, to_jsonb((n * 7919 + tag) % 97), now() - n * interval '600 seconds'
          FROM generate_series(1, 2000) AS n, generate_series(1, 30) AS tag
        """
    )
    url = f"{product}/api/workers/queue_metrics_series?window_secs=1209600"
    async with ClientSession() as session, session.get(url) as response:
        body = await response.read()
    answer = json.loads(body)
    assert len(body) < 2_000_000
    assert max(len(one["count"]) for one in answer["tags"]) < 600
