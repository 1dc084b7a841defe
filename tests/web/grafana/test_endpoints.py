"""The JSON datasource of the running product on a real database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession

from exporter.config import Config
from exporter.database.database import Connection
from exporter.fairness.audit import CAPPED, UNCAPPED
from exporter.snapshot import Snapshot
from exporter.web.grafana.metrics import METRICS
from tests import product
from tests.metrics.scenes import MONOTONIC, NOW, fairness, queue, snapshot
from tests.product import eventually, working
from tests.queue.scene import HOSTILE_NAMES, Job, add_jobs, add_worker
from tests.web.grafana_requests import FROM_MS, PANELS, TO_MS, simpod_0_6
from tests.web.grafana_scene import Grafana, grafana_of, since, store
from tests.web.serving import Service

NOWHERE = "postgres://nobody:secret@127.0.0.1:1/none"
PAYLOADS = [
    {"name": "tags", "label": "Tags", "type": "multi-select", "reloadMetric": False, "placeholder": "all"},
]
EMPTY_BODIES = [b"", b" ", b"null", b"{}"]


@pytest.fixture
async def grafana(windmill_url: str) -> AsyncIterator[Grafana]:
    """The product on a fresh database."""
    async with grafana_of(windmill_url) as client:
        yield client


@pytest.fixture
async def away() -> AsyncIterator[Grafana]:
    """The product without a database."""
    async with grafana_of(NOWHERE) as client:
        yield client


async def store_three(windmill: Connection) -> None:
    """Three tags; `deno` has no delay, and `b.c` the highest count."""
    await store(windmill, "count", "deno", [(100, 3), (400, 5)])
    await store(windmill, "count", "b.c", [(100, 30), (400, 50)])
    await store(windmill, "delay", "b.c", [(100, 10), (400, since(90))])
    await store(windmill, "count", "other", [(100, 1)])
    await store(windmill, "delay", "other", [(100, 4)])


def targets(answer: list[dict[str, object]]) -> list[object]:
    """The names of the series."""
    return [entry["target"] for entry in answer]


@pytest.mark.parametrize("path", ["grafana", "grafana/", "/grafana//"])
async def test_save_and_test_finds_a_working_datasource(grafana: Grafana, path: str) -> None:
    async with grafana.session.get(path) as response:
        assert (response.status, await response.json()) == (200, {"status": "ok"})
    async with grafana.session.head(path) as response:
        assert response.status == 200


async def test_save_and_test_is_200_without_a_database_and_says_what_is_wrong(windmill_url: str) -> None:
    """Field case F70."""
    async with product.service(NOWHERE) as running, ClientSession() as session:
        await eventually(running.urls[0], lambda page: page.value("windmill_exporter_up") == 0)
        async with asyncio.timeout(20):
            while True:
                async with session.get(f"{running.urls[0]}/grafana") as response:
                    assert response.status == 200
                    answer = await response.json()
                if answer["status"] != "ok":
                    break
                await asyncio.sleep(0.05)
    assert answer["status"] == "trouble"
    assert "queue: " in answer["message"]
    assert "secret" not in answer["message"]


@pytest.mark.parametrize("path", ["/metrics", "/search"])
async def test_the_metrics_are_listed_whatever_was_chosen(away: Grafana, path: str) -> None:
    bodies = [*EMPTY_BODIES, {"metric": "queue_co", "payload": {"tags": ["a"]}}, {"target": ""}, {"metric": 5}]
    for body in bodies:
        status, answer = await away.post(path, body)
        assert status == 200
        assert [each["value"] for each in answer] == list(METRICS)
        assert all(each["label"] and each["payloads"] == PAYLOADS for each in answer)
        assert all(set(each) == {"value", "label", "payloads"} for each in answer)


async def test_the_tags_of_a_payload_are_offered(grafana: Grafana, windmill: Connection) -> None:
    await store_three(windmill)
    asked = {"metric": "queue_delay", "payload": {}, "name": "tags"}
    assert await grafana.post("/metric-payload-options", asked) == (
        200,
        [{"value": tag, "label": tag} for tag in ("b.c", "deno", "other")],
    )


async def test_other_names_have_no_options_and_ask_no_database(away: Grafana) -> None:
    for body in [*EMPTY_BODIES, {"metric": "queue_delay", "name": "limit"}, {"metric": "none", "name": "tags"}]:
        assert await away.post("/metric-payload-options", body) == (200, [])


async def test_a_variable_lists_tags(grafana: Grafana, windmill: Connection) -> None:
    await store_three(windmill)
    listed = [{"__text": tag, "__value": tag} for tag in ("b.c", "deno", "other")]
    assert await grafana.post("/variable", {"payload": {"target": "tags"}, "range": {}}) == (200, listed)


async def test_a_variable_lists_metrics_and_nothing_for_other_words(away: Grafana) -> None:
    status, answer = await away.post("/variable", {"payload": {"target": "metrics"}})
    assert (status, [each["__value"] for each in answer]) == (200, list(METRICS))
    for body in [*EMPTY_BODIES, {"payload": {"target": "half"}}, {"payload": {"target": "workspaces"}}]:
        assert await away.post("/variable", body) == (200, [])


async def test_ad_hoc_filters_find_their_key_and_its_values(grafana: Grafana, windmill: Connection) -> None:
    await store_three(windmill)
    for body in [*EMPTY_BODIES, {"filters": []}]:
        assert await grafana.post("/tag-keys", body) == (200, [{"type": "string", "text": "tag"}])
    assert await grafana.post("/tag-values", {"key": "tag"}) == (
        200,
        [{"text": tag} for tag in ("b.c", "deno", "other")],
    )
    for body in [*EMPTY_BODIES, {"key": "City"}]:
        assert await grafana.post("/tag-values", body) == (200, [])


@pytest.mark.parametrize("body", [b"{", b"NaN", b'{"targets": [], "panelId": NaN}', b"\xff", b"[" * 200_000, b"queue"])
@pytest.mark.parametrize("path", ["/metrics", "/search", "/query", "/variable", "/tag-keys", "/tag-values"])
async def test_a_body_that_is_no_json_is_400(away: Grafana, path: str, body: bytes) -> None:
    """Field case F63."""
    status, answer = await away.post(path, body)
    assert status == 400
    assert answer["message"] == answer["error"]["message"]
    assert answer["message"].startswith("body: ")


async def test_a_body_that_is_too_large_is_413(away: Grafana) -> None:
    status, answer = await away.post("/query", b'{"targets": [], "x": "' + b"x" * 1024**2 + b'"}')
    assert (status, answer["error"]["code"]) == (413, "too_large")


async def test_every_generation_of_plugins_gets_the_same_answer(grafana: Grafana, windmill: Connection) -> None:
    """Field case F68."""
    await store_three(windmill)
    answers = {name: await grafana.post("/query", request) for name, request in PANELS.items()}
    status, answer = answers["simple JSON"]
    assert status == 200
    assert [(entry["target"], entry["refId"], entry["unit"]) for entry in answer] == [("b.c", "A", "s")]
    assert answer[0]["datapoints"][0] == [0.0, FROM_MS + 100_000 - 1]
    assert max(value for value, _ in answer[0]["datapoints"]) == 310.0 + 900.0
    assert {name for name, other in answers.items() if other != answers["simple JSON"]} == set()


async def test_the_smallest_request_is_enough(grafana: Grafana, windmill: Connection) -> None:
    """Field case F73."""
    await store_three(windmill)
    window = {"from": FROM_MS, "to": TO_MS}
    status, answer = await grafana.post("/query", {"range": window, "targets": [{"target": "queue_count"}]})
    assert (status, targets(answer)) == (200, ["b.c", "deno", "other"])
    assert all(set(entry) == {"target", "datapoints"} for entry in answer)
    assert await grafana.post("/query", {"targets": [{"target": "queue_count"}]}) == (200, [])


async def test_times_are_integers_in_the_window_that_strictly_rise(grafana: Grafana, windmill: Connection) -> None:
    """Field case F65."""
    await store_three(windmill)
    answer = await grafana.query("queue_count", "queue_delay")
    assert targets(answer) == ["b.c", "deno", "other", "b.c", "other"]
    for entry in answer:
        times = [at_ms for _, at_ms in entry["datapoints"]]
        assert all(isinstance(at_ms, int) for at_ms in times)
        assert times == sorted(set(times))
        assert FROM_MS <= times[0] <= times[-1] == TO_MS


@pytest.mark.parametrize(
    "target", ["queue_count:nobody", {"target": "queue_delay", "payload": {"tags": ["nobody", "\0"]}}]
)
async def test_an_unknown_tag_is_an_empty_answer(grafana: Grafana, windmill: Connection, target: object) -> None:
    """Field case F64."""
    await store_three(windmill)
    assert await grafana.query(target) == []


async def test_no_target_is_an_empty_answer_and_asks_no_database(away: Grafana) -> None:
    """Field case F64."""
    hidden = {"target": "queue_count", "hide": True}
    nothing: list[list[object]] = [[], [{"target": ""}], [{}], [None], [hidden]]
    for each in nothing:
        assert await away.query(*each) == []


@pytest.mark.parametrize("name", ["q", "queue_coun", "queue_counts", "queue count", ":deno"])
async def test_a_half_typed_metric_is_400_with_the_known_ones_and_asks_no_database(away: Grafana, name: str) -> None:
    """Field case F69."""
    status, answer = await away.post("/query", {"targets": [{"target": name}]})
    assert status == 400
    assert all(metric in answer["message"] for metric in METRICS)


@pytest.mark.parametrize("target", ["queue_count", "queue_delay:deno", "queue_count_grid", "fairness_events"])
async def test_without_a_database_an_answer_is_503_with_a_message(away: Grafana, target: str) -> None:
    """Field case F64: never 200 with an object."""
    status, answer = await away.post("/query", {"targets": [{"target": target}]})
    assert status == 503
    assert answer["message"]
    assert "secret" not in json.dumps(answer)
    for path, body in [("/variable", {"payload": {"target": "tags"}}), ("/tag-values", {"key": "tag"})]:
        assert (await away.post(path, body))[0] == 503


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"targets": [], "range": {"from": "yesterday"}}, "range.from"),
        ({"targets": [{"target": "queue_count"}], "range": {"from": TO_MS, "to": FROM_MS}}, "from"),
        ({"targets": [{"target": "fairness_events"}], "range": {"from": TO_MS, "to": FROM_MS}}, "from"),
        ({"targets": [], "filters": [{"key": "tag", "operator": "<", "value": 1}]}, "filters[0].operator"),
        ({"range": {}}, "targets"),
    ],
)
async def test_a_request_that_cannot_be_is_400_and_names_the_field(grafana: Grafana, body: object, field: str) -> None:
    status, answer = await grafana.post("/query", body)
    assert status == 400
    assert answer["message"].startswith(f"{field}: ")


async def test_numbers_beyond_all_measure_are_clamped(grafana: Grafana, windmill: Connection) -> None:
    """Field case F35."""
    await store_three(windmill)
    huge = {"maxDataPoints": 99_999_999_999, "intervalMs": 1e18, "panelId": 2**40}
    assert targets(await grafana.query("queue_count", **huge)) == ["b.c", "deno", "other"]


async def test_filters_narrow_every_target(grafana: Grafana, windmill: Connection) -> None:
    """Field case F72."""
    await store_three(windmill)
    for operator, value, expected in [
        ("=", "deno", ["deno"]),
        ("!=", "deno", ["b.c", "other"]),
        ("=~", "d.*|other", ["deno", "other"]),
        ("!~", "d.*|other", ["b.c"]),
        ("=|", "deno|b.c", ["b.c", "deno"]),
        ("=", "' OR 1=1 -- %s \"", []),
    ]:
        filters = [{"key": "tag", "operator": operator, "value": value}]
        assert targets(await grafana.query("queue_count", filters=filters)) == expected
        named = {"target": "queue_count", "payload": {"tags": ["deno", "b.c", "nobody"]}}
        assert targets(await grafana.query(named, filters=filters)) == [tag for tag in expected if tag != "other"]
        assert targets(await grafana.query("queue_count_grid", filters=filters)) == expected


async def test_targets_of_one_request_keep_apart(grafana: Grafana, windmill: Connection) -> None:
    await store_three(windmill)
    answer = await grafana.query(
        {"target": "queue_count:deno", "refId": "A"},
        {"target": "queue_delay", "refId": "B", "payload": {"tags": "b.c,deno"}},
        {"target": "queue_count:other,nobody", "refId": "C"},
        {"target": "queue_count:deno", "refId": "D"},
    )
    assert [(entry["refId"], entry["target"]) for entry in answer] == [
        ("A", "deno"),
        ("B", "b.c"),
        ("C", "other"),
        ("D", "deno"),
    ]
    assert answer[0]["datapoints"] == answer[3]["datapoints"]


async def test_a_limit_keeps_the_highest_and_says_so(grafana: Grafana, windmill: Connection) -> None:
    await store_three(windmill)
    limited = {"target": "queue_count", "payload": {"limit": "2"}}
    answer = await grafana.query(limited)
    assert targets(answer) == ["b.c", "deno"]
    assert "1 more series" in answer[0]["meta"]["notices"][0]["text"]
    assert targets(await grafana.query({"target": "queue_count", "payload": {"limit": 0}})) == ["b.c", "deno", "other"]


async def test_any_tag_arrives_as_it_is_and_can_be_asked_for(grafana: Grafana, windmill: Connection) -> None:
    for tag in HOSTILE_NAMES:
        await store(windmill, "count", tag, [(100, 3)])
    assert targets(await grafana.query("queue_count")) == sorted(HOSTILE_NAMES)
    for tag in HOSTILE_NAMES:
        assert targets(await grafana.query({"target": "queue_count", "payload": {"tags": [tag]}})) == [tag]
        filters = [{"key": "tag", "operator": "!=", "value": tag}]
        others = targets(await grafana.query("queue_count", filters=filters))
        assert others == sorted(set(HOSTILE_NAMES) - {tag})


async def test_a_tag_named_nan_is_no_number(grafana: Grafana, windmill: Connection) -> None:
    """Field case F63."""
    await store(windmill, "count", "NaN", [(100, 3), (130, "NaN"), (200, 4)])
    [entry] = await grafana.query("queue_count")
    assert entry["target"] == "NaN"
    assert {value for value, _ in entry["datapoints"]} == {0.0, 3.0, 4.0}


@pytest.mark.parametrize("metric", ["queue_count", "queue_count_grid"])
async def test_values_beyond_all_measure_break_nothing(grafana: Grafana, windmill: Connection, metric: str) -> None:
    """Field case F63: no answer holds what JSON cannot."""
    await store(windmill, "count", "huge", [(100, 1e308), (130, -1e308)])
    await store(windmill, "count", "deno", [(100, 3)])
    answer = await grafana.query(metric)
    assert "deno" in targets(answer)
    assert all(isinstance(value, float) for entry in answer for value, _ in entry["datapoints"])


async def test_a_grid_gives_every_tag_the_same_times(grafana: Grafana, windmill: Connection) -> None:
    await store_three(windmill)
    answer = await grafana.query("queue_count_grid", maxDataPoints=100)
    assert targets(answer) == ["b.c", "deno", "other"]
    times = [[at_ms for _, at_ms in entry["datapoints"]] for entry in answer]
    step_ms = (TO_MS - FROM_MS) // 20
    assert times == [[FROM_MS + step_ms * step for step in range(20)]] * 3
    assert answer[1]["datapoints"][0][0] == pytest.approx((3 * 300 + 5 * 140) / 540, abs=0.001)
    assert [entry["unit"] for entry in await grafana.query("queue_delay_grid")] == ["s", "s"]


async def test_a_grid_of_too_many_tags_shows_those_with_the_highest_peaks(
    grafana: Grafana, windmill: Connection
) -> None:
    for number in range(53):
        await store(windmill, "count", f"tag-{number:02}", [(100, number + 1)])
    answer = await grafana.query({"target": "queue_count_grid", "payload": {"limit": 0}})
    assert targets(answer) == [f"tag-{number:02}" for number in range(3, 53)]
    assert "3 more series" in answer[0]["meta"]["notices"][0]["text"]
    answer = await grafana.query({"target": "queue_count_grid", "payload": {"limit": 2}})
    assert targets(answer) == ["tag-51", "tag-52"]
    assert "51 more series" in answer[0]["meta"]["notices"][0]["text"]


async def test_caps_and_uncaps_of_the_audit_log_are_annotations(grafana: Grafana, windmill: Connection) -> None:
    """Field case F70: annotations are asked for like any data."""
    for operation, ago, parameters in [
        (CAPPED, 600, '{"max_percent": "60", "window_secs": "10"}'),
        (UNCAPPED, 300, None),
    ]:
        await windmill.execute(
            """
            INSERT INTO audit_partitioned
                   (workspace_id, "timestamp", username, operation, action_kind, resource, parameters)
            VALUES ('admins', now() - make_interval(secs => $1), 'system', $2, 'update', 'noisy', $3::text::jsonb)
            """,
            ago,
            operation,
            parameters,
        )
    status, [table] = await grafana.post("/query", {"targets": [{"target": "fairness_events", "refId": "Anno"}]})
    assert (status, table["type"], table["refId"]) == (200, "table", "Anno")
    assert [column["text"] for column in table["columns"]] == ["time", "timeEnd", "title", "text", "tags"]
    [[time, time_end, title, text, tags]] = table["rows"]
    assert time_end - time == pytest.approx(300_000, abs=5_000)
    assert (title, tags) == ("noisy capped", "fairness,capped")
    assert text == "Held more than 60 % of the workers' time over 10 s."
    old = {"targets": [{"target": "fairness_events"}], "range": {"from": FROM_MS, "to": TO_MS}}
    status, [table] = await grafana.post("/query", old)
    assert (status, table["rows"]) == (200, [])


async def test_tables_show_what_the_loops_read_last(windmill_url: str, windmill: Connection) -> None:
    await add_jobs(windmill, Job("deno", workspace="demo"), number=3)
    await add_worker(windmill, "worker-1", ["deno"])
    async with product.service(windmill_url, Config()) as running, ClientSession(f"{running.urls[0]}/") as session:
        await eventually(running.urls[0], working("queue", "fairness"))
        grafana = Grafana(session)
        now, shares = await grafana.query("queue_current", "fairness_shares")
        workspaces = await grafana.post("/variable", {"payload": {"target": "workspaces"}})
    [[_, tag, count, delay, running_jobs, workers]] = now["rows"]
    assert (tag, count, running_jobs, workers) == ("deno", 3, 0, 1)
    assert delay == pytest.approx(10, abs=20)
    assert [column["text"] for column in shares["columns"]][:3] == ["time", "workspace", "share"]
    assert workspaces == (200, [{"__text": "demo", "__value": "demo"}])


@pytest.mark.parametrize("target", ["queue_current", "fairness_shares"])
async def test_what_nobody_reads_is_503_and_says_which_mode(grafana: Grafana, target: str) -> None:
    status, answer = await grafana.post("/query", {"targets": [{"target": target}]})
    assert status == 503
    assert f"{target.partition('_')[0]}.mode is off" in answer["message"]


OLD = MONOTONIC - 100


@pytest.mark.parametrize(
    ("target", "state", "message"),
    [
        ("queue_current", snapshot(fairness(), queue(observed_monotonic=OLD)), "too old"),
        ("queue_current", snapshot(fairness(), None), "not read yet"),
        ("fairness_shares", snapshot(fairness(observed_monotonic=OLD), queue()), "too old"),
        ("fairness_shares", snapshot(fairness(read_at=NOW - 100), queue()), "too old"),
        ("fairness_shares", snapshot(fairness(with_reading=False), queue()), "not read yet"),
        ("fairness_shares", snapshot(None, queue()), "not read yet"),
    ],
)
async def test_a_reading_that_is_too_old_to_be_shown_is_503(
    client: ClientSession, service: Service, target: str, state: Snapshot, message: str
) -> None:
    service.board.current = state
    status, answer = await Grafana(client).post("/query", {"targets": [{"target": target}]})
    assert status == 503
    assert message in answer["message"]


async def test_a_locked_table_is_503_with_a_message(grafana: Grafana, windmill: Connection) -> None:
    async with windmill.transaction():
        await windmill.execute("LOCK TABLE metrics")
        status, answer = await grafana.post(
            "/query", {"targets": [{"target": "queue_count"}, {"target": "queue_delay"}]}
        )
    assert (status, answer["error"]["code"]) == (503, "lock_timeout")


async def test_identical_requests_at_one_moment_share_their_statements(windmill_url: str, windmill: Connection) -> None:
    await store_three(windmill)
    before = await committed(windmill)
    async with grafana_of(windmill_url) as grafana, asyncio.TaskGroup() as group:
        answers = [group.create_task(grafana.query("queue_count", "queue_delay")) for _ in range(10)]
    assert len({json.dumps(each.result()) for each in answers}) == 1
    assert await committed(windmill) - before <= 6


async def committed(windmill: Connection) -> int:
    """Transactions of this database so far, those of connections that are closed."""
    await windmill.execute("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
    return int(await windmill.fetchval("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"))


async def test_typing_costs_few_statements(windmill_url: str, windmill: Connection) -> None:
    """Field case F69: five users type a target; each keystroke is a request for the metrics and one for data."""
    await store_three(windmill)
    typed = "queue_delay:a-tag-that-does-not-exist-yet"
    statuses: list[int] = []

    async def type_it(grafana: Grafana) -> None:
        for length in range(1, len(typed) + 1):
            assert (await grafana.post("/metrics", {"metric": typed[:length]}))[0] == 200
            statuses.append((await grafana.post("/query", simpod_0_6(typed[:length], {})))[0])

    before = await committed(windmill)
    began = asyncio.get_running_loop().time()
    async with grafana_of(windmill_url) as grafana:
        await asyncio.gather(*(type_it(grafana) for _ in range(5)))
    seconds = asyncio.get_running_loop().time() - began
    assert len(statuses) == 5 * len(typed)
    assert set(statuses) == {200, 400}
    # The two prefixes that ask for every tag, the list of tags twice a second, and what a connection asks at first.
    assert await committed(windmill) - before <= 2 * 5 + 2 * seconds + 6
