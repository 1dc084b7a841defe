"""Pure: answers of Grafana's JSON datasource. One entry a series, values first, times strictly rising; or a table.

Entries are made one at a time while they are encoded: all of them at once would weigh many times their JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from typing import Final, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from exporter.queue.history import GridRow, Line
from exporter.queue.nudge import nudged
from exporter.web.grafana.request import Target

PLACES: Final = 3
# From here on a value has no third place that could be wrong, and times a thousand it might be infinite.
WHOLE: Final = 1e12
Point: TypeAlias = tuple[float, int]
Cell: TypeAlias = str | float | bool | None


class Notice(Struct, frozen=True):
    """A remark that Grafana shows at the corner of the panel."""

    severity: str
    text: str


class Meta(Struct, frozen=True):
    """What is said about a series beside its values."""

    notices: tuple[Notice, ...]


class SeriesEntry(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One series: `datapoints` are (value, epoch milliseconds)."""

    target: str
    ref_id: str | UnsetType = UNSET
    datapoints: Sequence[Point]
    unit: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class Column(Struct, frozen=True):
    """A column of a table: its name, and `time`, `string`, `number` or `boolean`."""

    text: str
    type: str


class TableEntry(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="type", tag="table"):
    """One table."""

    ref_id: str | UnsetType = UNSET
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]


Entry: TypeAlias = SeriesEntry | TableEntry


def series_entries(target: Target, lines: Iterable[Line], from_ms: int) -> Iterator[SeriesEntry]:
    """The lines of one target, those with the highest peaks where there are more than it asks for."""
    tags = None if target.tags is None else frozenset(target.tags)
    own = [line for line in lines if line.kind is target.metric.kind and (tags is None or line.tag in tags)]
    shown = highest([line.vertices.peak for line in own], target.limit)
    notice = _left_out(len(own) - len(shown))
    for index in shown:
        # To three places, halves up. round(), or a function of our own, takes twice as long for up to 850,000 vertices.
        points = [
            (int(value * 1000 + 0.5) / 1000 if value < WHOLE else value, at_ms)
            for at_ms, value in nudged(own[index].vertices, from_ms)
        ]
        yield _series(target, own[index].tag, points, notice)
        notice = UNSET


def grid_entries(target: Target, rows: Iterable[GridRow], left_out: int = 0) -> Iterator[SeriesEntry]:
    """The means of one target's tags on their common grid; `left_out` tags were not even read."""
    points: dict[str, list[Point]] = {}
    peaks: dict[str, float] = {}
    for row in rows:
        points.setdefault(row.tag, []).append((round(row.mean, PLACES), row.time_ms))
        peaks[row.tag] = max(row.max, peaks.get(row.tag, 0.0))
    tags = list(points)
    shown = highest([peaks[tag] for tag in tags], target.limit)
    notice = _left_out(left_out + len(tags) - len(shown))
    for index in shown:
        yield _series(target, tags[index], points[tags[index]], notice)
        notice = UNSET


def highest(peaks: Sequence[float], limit: int) -> Sequence[int]:
    """The indices of the `limit` highest peaks (0: all), in their order; of equal ones the first."""
    if limit == 0 or len(peaks) <= limit:
        return range(len(peaks))
    return sorted(nsmallest(limit, range(len(peaks)), key=lambda index: (-peaks[index], index)))


def _series(target: Target, tag: str, points: Sequence[Point], notice: Meta | UnsetType) -> SeriesEntry:
    return SeriesEntry(
        target=tag, ref_id=_given(target.ref_id), datapoints=points, unit=_given(target.metric.unit), meta=notice
    )


def _left_out(number: int) -> Meta | UnsetType:
    if not number:
        return UNSET
    text = f'{number} more series with lower peaks are left out; the payload {{"limit": 0}} shows all.'
    return Meta((Notice("warning", text),))


def _given(text: str | None) -> str | UnsetType:
    return UNSET if text is None else text
