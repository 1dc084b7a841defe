"""Tables: the queue and the shares as last read, caps and uncaps as annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from exporter.fairness.audit import CAPPED, UNCAPPED
from exporter.fairness.events import Event
from exporter.fairness.values import Payload
from exporter.web.current_queue import current_tags
from exporter.web.grafana.answer import TableEntry
from exporter.web.grafana.metrics import METRICS
from exporter.web.grafana.request import Target
from exporter.web.grafana.tables import events_table, queue_table, shares_table
from exporter.web.grafana.tags import Tags, read_filters
from tests.metrics.scenes import NOW, fairness, queue, tag

NOW_MS = 1_800_000_000_000
EVER = (0, 2 * NOW_MS)


def target(metric: str, tags: Tags | None = None, ref_id: str | None = "A") -> Target:
    """A target without a limit."""
    return Target(METRICS[metric], ref_id, tags, 0)


def decoded(table: TableEntry) -> Mapping[str, Any]:
    """A table as a client reads it."""
    read: Mapping[str, Any] = msgspec.json.decode(msgspec.json.encode(table))
    return read


def rows(table: TableEntry) -> list[dict[str, Any]]:
    """Each row by its columns' names."""
    read = decoded(table)
    names = [column["text"] for column in read["columns"]]
    assert all(len(row) == len(names) for row in read["rows"])
    return [dict(zip(names, row, strict=True)) for row in read["rows"]]


TAGS = current_tags(
    queue([tag("deno", 5, running=2, workers=3), tag("idle", running=1), tag("b.c", 1, workers=0)]).reading
)


def test_a_table_says_so_and_echoes_the_ref_id() -> None:
    table = decoded(queue_table(target("queue_current"), NOW, TAGS, ()))
    assert (table["type"], table["refId"]) == ("table", "A")
    assert table["columns"][:2] == [{"text": "time", "type": "time"}, {"text": "tag", "type": "string"}]
    assert "refId" not in decoded(queue_table(target("queue_current", ref_id=None), NOW, TAGS, ()))


def test_the_queue_has_a_row_a_tag_as_of_the_reading() -> None:
    assert rows(queue_table(target("queue_current"), NOW, TAGS, ())) == [
        {"time": NOW_MS, "tag": "b.c", "count": 1, "delay": 12.0, "running": 0, "workers": 0},
        {"time": NOW_MS, "tag": "deno", "count": 5, "delay": 12.0, "running": 2, "workers": 3},
        {"time": NOW_MS, "tag": "idle", "count": 0, "delay": 0.0, "running": 1, "workers": 1},
    ]


def test_the_queue_keeps_to_the_tags_and_the_filters() -> None:
    filters = read_filters([{"key": "tag", "operator": "!=", "value": "deno"}], "filters")
    assert [row["tag"] for row in rows(queue_table(target("queue_current"), NOW, TAGS, filters))] == ["b.c", "idle"]
    assert [row["tag"] for row in rows(queue_table(target("queue_current", ("b.c", "deno")), NOW, TAGS, filters))] == [
        "b.c"
    ]
    assert rows(queue_table(target("queue_current", ("nobody",)), NOW, TAGS, ())) == []


def test_shares_have_a_row_a_workspace_and_name_the_capped() -> None:
    snapshot = fairness()
    assert snapshot.reading is not None
    assert rows(shares_table(target("fairness_shares"), snapshot, snapshot.reading)) == [
        {
            "time": NOW_MS,
            "workspace": "noisy",
            "share": 0.72,
            "worker_seconds": 360.0,
            "capped": True,
            "capped_since": NOW_MS - 42_500,
        },
        {
            "time": NOW_MS,
            "workspace": "quiet",
            "share": 0.28,
            "worker_seconds": 140.0,
            "capped": False,
            "capped_since": None,
        },
    ]


def test_a_capped_workspace_that_holds_nothing_has_a_row_too() -> None:
    snapshot = fairness((), in_force=Payload(("gone",), 518))
    assert snapshot.reading is not None
    [row] = rows(shares_table(target("fairness_shares"), snapshot, snapshot.reading))
    assert (row["workspace"], row["share"], row["capped"]) == ("gone", 0.0, True)


def capped(workspace: str, ago: float, **parameters: object) -> Event:
    """A cap that many seconds ago."""
    return Event(NOW - ago, CAPPED, workspace, parameters or None)


def uncapped(workspace: str, ago: float) -> Event:
    """An uncap that many seconds ago."""
    return Event(NOW - ago, UNCAPPED, workspace, None)


def shown(*events: Event, window: tuple[int, int] = EVER) -> list[tuple[int, int | None, str]]:
    """Begin and end of each annotation in seconds before now, and its title."""
    newest_first = sorted(events, key=lambda event: -event.at)
    found = rows(events_table(target("fairness_events"), newest_first, *window))
    return [
        ((NOW_MS - row["time"]) // 1000, row["timeEnd"] and (NOW_MS - row["timeEnd"]) // 1000, row["title"])
        for row in found
    ]


def test_events_have_the_columns_of_annotations() -> None:
    event = capped("noisy", 100, max_percent="60", window_secs="10", total_overloaded="1")
    [row] = rows(events_table(target("fairness_events"), [event], *EVER))
    assert row == {
        "time": NOW_MS - 100_000,
        "timeEnd": None,
        "title": "noisy capped",
        "text": "Held more than 60 % of the workers' time over 10 s.",
        "tags": "fairness,capped",
    }


def test_a_cap_that_ended_spans_its_duration() -> None:
    assert shown(capped("a", 100), uncapped("a", 40)) == [(100, 40, "a capped")]


def test_each_workspace_and_each_time_has_its_own_span() -> None:
    assert shown(
        capped("a", 100), capped("b", 90), uncapped("a", 80), capped("a", 70), uncapped("b", 60), uncapped("a", 50)
    ) == [(100, 80, "a capped"), (90, 60, "b capped"), (70, 50, "a capped")]


def test_what_has_no_counterpart_is_a_moment() -> None:
    """The other row may be older than the latest 200, or was never written."""
    assert shown(uncapped("a", 100), capped("a", 90), capped("a", 80), uncapped("a", 70), capped("b", 60)) == [
        (100, None, "a uncapped"),
        (90, None, "a capped"),
        (80, 70, "a capped"),
        (60, None, "b capped"),
    ]


def test_only_what_touches_the_window_is_shown() -> None:
    events = (capped("a", 100), uncapped("a", 50), capped("b", 200), uncapped("b", 150), capped("c", 10))
    window = (NOW_MS - 90_000, NOW_MS - 20_000)
    assert shown(*events, window=window) == [(100, 50, "a capped")]
    assert shown(*events, window=(NOW_MS - 10_000, NOW_MS)) == [(10, None, "c capped")]
    assert shown(window=window) == []


@pytest.mark.parametrize("parameters", [{"max_percent": "60"}, {"other": [1]}, {"max_percent": None, "window_secs": 0}])
def test_details_that_are_incomplete_make_no_sentence(parameters: dict[str, object]) -> None:
    [row] = rows(events_table(target("fairness_events"), [capped("a", 1, **parameters)], *EVER))
    assert row["text"] == ""


@pytest.mark.parametrize("workspace", ['quote"d', "it's <b>", "new\nline", "😀", "NaN"])
def test_any_name_arrives_as_it_is(workspace: str) -> None:
    assert shown(capped(workspace, 1)) == [(1, None, f"{workspace} capped")]
