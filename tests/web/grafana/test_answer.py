"""Entries of series: shape, rounding, units, the highest peaks, times that strictly rise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.queue.history import GridRow, Kind, Line
from exporter.queue.render import Vertex
from exporter.queue.vertices import Vertices
from exporter.web.grafana.answer import SeriesEntry, grid_entries, highest, series_entries
from exporter.web.grafana.metrics import METRICS
from exporter.web.grafana.request import Target

FROM_MS = 1_800_000_000_000


def line(tag: str, *vertices: Vertex, kind: Kind = Kind.COUNT) -> Line:
    """A line whose times are milliseconds after the beginning of the window."""
    return Line(kind, tag, Vertices((FROM_MS + at_ms, value) for at_ms, value in vertices))


def target(metric: str = "queue_count", **changes: Any) -> Target:
    """A target of all tags and without a limit."""
    return Target(**{"metric": METRICS[metric], "ref_id": "A", "tags": None, "limit": 0, **changes})


def answered(asked: Target, lines: Iterable[Line]) -> list[Mapping[str, Any]]:
    """The entries of lines as a client reads them."""
    return decoded(series_entries(asked, lines, FROM_MS))


def decoded(entries: Iterable[SeriesEntry]) -> list[Mapping[str, Any]]:
    """Entries as a client reads them."""
    read: list[Mapping[str, Any]] = msgspec.json.decode(msgspec.json.encode(list(entries)))
    return read


def test_an_entry_is_target_ref_id_and_datapoints_with_the_value_first() -> None:
    assert answered(target(), [line("deno", (0, 1.0), (1000, 5.0))]) == [
        {"target": "deno", "refId": "A", "datapoints": [[1.0, FROM_MS], [5.0, FROM_MS + 1000]]}
    ]


def test_without_a_ref_id_there_is_none() -> None:
    assert "refId" not in answered(target(ref_id=None), [line("deno", (0, 1.0))])[0]
    assert answered(target(ref_id=""), [line("deno", (0, 1.0))])[0]["refId"] == ""


def test_a_delay_is_in_seconds() -> None:
    assert answered(target("queue_delay"), [line("deno", (0, 1.0), kind=Kind.DELAY)])[0]["unit"] == "s"


def test_a_target_gets_the_lines_of_its_kind_and_its_tags() -> None:
    lines = [line("a", (0, 1.0)), line("a", (0, 2.0), kind=Kind.DELAY), line("b", (0, 3.0)), line("b,c", (0, 4.0))]
    assert [entry["target"] for entry in answered(target(), lines)] == ["a", "b", "b,c"]
    assert [entry["target"] for entry in answered(target(tags=("b,c", "a", "nobody")), lines)] == ["a", "b,c"]
    assert [entry["target"] for entry in answered(target("queue_delay"), lines)] == ["a"]
    assert answered(target(), []) == []


def test_values_are_rounded_to_three_places() -> None:
    [entry] = answered(
        target(), [line("deno", (0, 1.23456), (1, 0.0004), (2, 1e12 + 0.3), (3, 2.0), (4, 0.0625), (5, 1.7e308))]
    )
    assert [value for value, _ in entry["datapoints"]] == [1.235, 0.0, 1e12 + 0.3, 2.0, 0.063, 1.7e308]


def test_a_drop_at_one_millisecond_is_drawn_with_the_top_a_millisecond_earlier() -> None:
    """Otherwise Grafana's join keeps only the bottom, and the peak is lost (field case F65)."""
    [entry] = answered(target(), [line("deno", (0, 0.0), (5000, 9.0), (5000, 0.0), (9000, 0.0))])
    assert entry["datapoints"] == [[0.0, FROM_MS], [9.0, FROM_MS + 4999], [0.0, FROM_MS + 5000], [0.0, FROM_MS + 9000]]


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 1e6)), min_size=1, max_size=30))
def test_times_strictly_rise_within_the_window_and_no_value_is_lost(vertices: list[Vertex]) -> None:
    ordered = sorted(vertices, key=lambda vertex: vertex[0])
    end = ordered[-1][0] + len(ordered)
    [entry] = answered(target(), [line("deno", *ordered, (end, 0.0))])
    times = [at_ms for _, at_ms in entry["datapoints"]]
    assert all(isinstance(at_ms, int) for at_ms in times)
    assert times == sorted(set(times))
    assert times[0] >= FROM_MS
    assert times[-1] == FROM_MS + end
    assert [value for value, _ in entry["datapoints"]] == [
        *(pytest.approx(value, abs=0.000501) for _, value in ordered),
        0.0,
    ]


def test_a_limit_keeps_the_highest_peaks_in_their_order_and_says_so_once() -> None:
    lines = [line(f"tag-{number}", (0, 1.0), (1000, float(peak))) for number, peak in enumerate([3, 9, 1, 7, 7])]
    entries = answered(target(limit=3), lines)
    assert [entry["target"] for entry in entries] == ["tag-1", "tag-3", "tag-4"]
    text = '2 more series with lower peaks are left out; the payload {"limit": 0} shows all.'
    assert entries[0]["meta"] == {"notices": [{"severity": "warning", "text": text}]}
    assert all("meta" not in entry for entry in entries[1:])


@pytest.mark.parametrize("limit", [0, 5, 6, 50])
def test_nothing_is_left_out_or_said_within_the_limit(limit: int) -> None:
    entries = answered(target(limit=limit), [line(f"tag-{number}", (0, float(number))) for number in range(5)])
    assert len(entries) == 5
    assert all("meta" not in entry for entry in entries)


@given(st.lists(st.floats(0, 10), max_size=12), st.integers(1, 12))
def test_no_series_left_out_has_a_higher_peak_than_one_shown(peaks: list[float], limit: int) -> None:
    shown = list(highest(peaks, limit))
    left = [peak for index, peak in enumerate(peaks) if index not in shown]
    assert len(shown) == min(limit, len(peaks))
    assert shown == sorted(set(shown))
    assert all(peaks[index] >= peak for index in shown for peak in left)


GRID = [GridRow(FROM_MS + step * 1000, tag, step + 0.12345, 10.0 * ord(tag)) for step in range(3) for tag in "ab"]


def test_a_grid_has_the_means_of_every_tag_at_the_same_times() -> None:
    times = [FROM_MS, FROM_MS + 1000, FROM_MS + 2000]
    entries = decoded(grid_entries(target("queue_delay_grid"), GRID))
    assert entries == [
        {
            "target": tag,
            "refId": "A",
            "datapoints": [[value, at_ms] for value, at_ms in zip([0.123, 1.123, 2.123], times, strict=True)],
            "unit": "s",
        }
        for tag in "ab"
    ]
    assert decoded(grid_entries(target("queue_count_grid"), [])) == []


def test_a_grid_keeps_the_tags_with_the_highest_peaks_and_counts_those_never_read() -> None:
    [entry] = decoded(grid_entries(target("queue_count_grid", limit=1), GRID, left_out=3))
    assert entry["target"] == "b"
    assert entry["meta"]["notices"][0]["text"].startswith("4 more series")
