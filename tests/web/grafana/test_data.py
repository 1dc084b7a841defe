"""Grafana's own library reads the product's answers: panels of several series are joined on their times."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from exporter.database.database import Connection
from exporter.fairness.audit import CAPPED
from exporter.fairness.events import Event
from exporter.web.current_queue import CurrentTag
from exporter.web.grafana.metrics import METRICS
from exporter.web.grafana.request import Target
from exporter.web.grafana.tables import events_table, queue_table, shares_table
from tests.metrics.scenes import fairness
from tests.web.grafana_data import Field, GrafanaData, install
from tests.web.grafana_requests import FROM_MS, TO_MS
from tests.web.grafana_scene import grafana_of, store_afternoon

TAGS = ("b.c", "deno", "python3", "it's 100%")
Points = list[tuple[int, float]]

pytestmark = pytest.mark.needs("node", "npm")


@pytest.fixture(scope="session")
def grafana_data() -> GrafanaData:
    """npm's `@grafana/data`."""
    return install()


@pytest.fixture
async def answers(windmill_url: str, windmill: Connection) -> dict[str, list[dict[str, Any]]]:
    """Answers for four tags by metric; `exact` is what Windmill's endpoint draws of the delays, drops and all."""
    await store_afternoon(windmill, TAGS)
    async with grafana_of(windmill_url) as grafana:
        found = {name: await grafana.query(name) for name in ("queue_count", "queue_delay", "queue_delay_grid")}
        found["limited"] = await grafana.query({"target": "queue_delay", "refId": "A", "payload": {"limit": 3}})
        path = f"api/workers/queue_metrics_series?from={FROM_MS}&to={TO_MS}"
        async with grafana.session.get(path) as response:
            series = (await response.json())["tags"]
    found["exact"] = [
        {"target": each["tag"], "datapoints": [[value, at_ms] for at_ms, value in each["delay"]]} for each in series
    ]
    return found


def read(grafana_data: GrafanaData, answer: list[dict[str, Any]]) -> list[Field]:
    """The joined fields of an answer."""
    return grafana_data.read(json.dumps(answer).encode()).joined


def sent(entry: dict[str, Any]) -> Points:
    """What the answer holds of one series."""
    return [(at_ms, value) for value, at_ms in entry["datapoints"]]


def kept(times: Field, series: Field) -> Points:
    """What is left of one series after the join."""
    return [(at_ms, value) for at_ms, value in zip(times.values, series.values, strict=True) if value is not None]


@pytest.mark.parametrize("metric", ["queue_count", "queue_delay", "queue_delay_grid", "limited"])
def test_every_entry_is_a_frame_of_times_and_numbers(
    grafana_data: GrafanaData, answers: dict[str, list[dict[str, Any]]], metric: str
) -> None:
    frames = grafana_data.read(json.dumps(answers[metric]).encode()).frames
    assert [frame.name for frame in frames] == [entry["target"] for entry in answers[metric]]
    for frame, entry in zip(frames, answers[metric], strict=True):
        times, values = frame.fields
        assert (times.type, values.type) == ("time", "number")
        assert values.unit == (None if metric == "queue_count" else "s")
        assert list(zip(times.values, values.values, strict=True)) == sent(entry)
        assert times.values == sorted(set(times.values))


@pytest.mark.parametrize("metric", ["queue_count", "queue_delay"])
def test_the_outer_join_loses_no_vertex_and_no_peak(
    grafana_data: GrafanaData, answers: dict[str, list[dict[str, Any]]], metric: str
) -> None:
    times, *joined = read(grafana_data, answers[metric])
    assert times.type == "time"
    assert times.values == sorted(set(times.values))
    assert len(joined) == len(TAGS)
    for series, entry in zip(joined, answers[metric], strict=True):
        assert series.type == "number"
        assert kept(times, series) == sent(entry)
        assert len(kept(times, series)) > 40


def test_every_kind_of_peak_is_there(grafana_data: GrafanaData, answers: dict[str, list[dict[str, Any]]]) -> None:
    """A spike of 29 s in slots of 90 s, and the top of a climb of 3,400 s that a job of 12.5 s ended."""
    counts, delays = read(grafana_data, answers["queue_count"]), read(grafana_data, answers["queue_delay"])
    tops = {series.name: max(value or 0 for value in series.values) for series in counts[1:]}
    assert tops == {tag: 900 + number for number, tag in enumerate(TAGS)}
    assert all(max(value or 0 for value in series.values) == pytest.approx(3_400, abs=1) for series in delays[1:])


def test_without_strictly_rising_times_the_join_would_lose_them(
    grafana_data: GrafanaData, answers: dict[str, list[dict[str, Any]]]
) -> None:
    """What makes the tests above mean something: exact verticals do not survive."""
    times, *joined = read(grafana_data, answers["exact"])
    lost = [len(sent(entry)) - len(kept(times, series)) for series, entry in zip(joined, answers["exact"], strict=True)]
    assert all(number > 0 for number in lost)


def test_common_times_stay_common(grafana_data: GrafanaData, answers: dict[str, list[dict[str, Any]]]) -> None:
    times, *joined = read(grafana_data, answers["queue_delay_grid"])
    assert len(times.values) == 120
    assert all(None not in series.values for series in joined)


def test_what_a_limit_left_out_is_noted(grafana_data: GrafanaData, answers: dict[str, list[dict[str, Any]]]) -> None:
    frames = grafana_data.read(json.dumps(answers["limited"]).encode()).frames
    assert [frame.ref_id for frame in frames] == ["A"] * 3
    assert [len(frame.notices) for frame in frames] == [1, 0, 0]


def test_tables_have_columns_of_their_types(grafana_data: GrafanaData) -> None:
    """Annotations need `time` and `timeEnd` by these names."""
    events = [Event(1_800_000_000.0, CAPPED, "noisy", None)]
    snapshot = fairness()
    assert snapshot.reading is not None
    tables = [
        queue_table(
            Target(METRICS["queue_current"], "A", None, 0), 1_800_000_000.0, [CurrentTag("a", 1, 2.0, 3, 4)], ()
        ),
        shares_table(Target(METRICS["fairness_shares"], "B", None, 0), snapshot, snapshot.reading),
        events_table(Target(METRICS["fairness_events"], "C", None, 0), events, 0, 2_000_000_000_000),
    ]
    frames = grafana_data.read(msgspec.json.encode(tables)).frames
    types = [{field.name: field.type for field in frame.fields} for frame in frames]
    assert types[0] == {"time": "time", "tag": "string"} | dict.fromkeys(
        ["count", "delay", "running", "workers"], "number"
    )
    assert types[1]["share"] == "number"
    assert types[1]["capped"] == "boolean"
    assert types[2] == {"time": "time", "timeEnd": "time", "title": "string", "text": "string", "tags": "string"}
    assert [field.values for field in frames[2].fields] == [
        [1_800_000_000_000],
        [None],
        ["noisy capped"],
        [""],
        ["fairness,capped"],
    ]
