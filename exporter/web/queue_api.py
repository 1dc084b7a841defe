"""Flat JSON under `/api/queue`: for Infinity, curl and scripts."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from exporter.queue.grid import GridRow
from exporter.queue.nudge import nudged
from exporter.queue.vertices import Vertices
from exporter.queue.window import MAX_SLOTS
from exporter.slices import in_slices
from exporter.web.current_queue import current_tags, fresh_reading
from exporter.web.keys import READERS
from exporter.web.streams import joined, stream_json
from exporter.web.windows import parse_kind, parse_step, parse_tags, parse_window

ROWS_AT_ONCE: Final = 1000
encode: Final = msgspec.json.encode


class CurrentRow(msgspec.Struct, frozen=True):
    """One tag now; `time` in epoch milliseconds, `delay` in seconds, 0 without a backlog."""

    time: int
    tag: str
    count: int
    delay: float
    running: int
    workers: int


class PointRow(msgspec.Struct, frozen=True):
    """One vertex."""

    time: int
    tag: str
    value: float


class StepRow(msgspec.Struct, frozen=True):
    """One tag in one step of a grid."""

    time: int
    tag: str
    mean: float
    max: float


async def current(request: web.Request) -> web.StreamResponse:
    """Every tag with jobs waiting or running, as of the last reading; of `tags` only these."""
    wanted = parse_tags(request.query)
    reading = fresh_reading(request)
    time = round(reading.read_at * 1000)
    rows = (
        CurrentRow(time, one.tag, one.waiting, one.delay_seconds or 0.0, one.running, one.workers)
        for one in current_tags(reading)
        if wanted is None or one.tag in wanted
    )
    return await stream_json(request, joined(_encoded(rows)))


async def points(request: web.Request) -> web.StreamResponse:
    """The lines of one kind as rows, by time; the times of a tag rise strictly."""
    kind, tags, window = parse_kind(request.query), parse_tags(request.query), parse_window(request.query)
    drawn = await request.app[READERS].history.series(window, slots=MAX_SLOTS, kinds=(kind,), tags=tags)
    lines = [
        (line.tag, Vertices(nudged(line.vertices, drawn.window.from_ms))) async for line in in_slices(drawn.lines, 10)
    ]
    return await stream_json(request, joined(_encoded(_by_time(lines))))


async def grid(request: web.Request) -> web.StreamResponse:
    """Means over time and maxima of one kind on one grid, for whoever sums or averages."""
    kind, tags, window = parse_kind(request.query), parse_tags(request.query), parse_window(request.query)
    found = await request.app[READERS].history.grid(window, parse_step(request.query), kind, tags)
    return await stream_json(request, joined(_encoded(map(_step, found))))


QUEUE_ROUTES: Final[dict[str, Handler]] = {
    "/api/queue/current": current,
    "/api/queue/points": points,
    "/api/queue/grid": grid,
}


def _by_time(lines: Iterable[tuple[str, Vertices]]) -> Iterator[PointRow]:
    """The vertices of all lines by time, made as they are asked for."""
    merged = heapq.merge(*(_moments(tag, vertices) for tag, vertices in lines))
    return (PointRow(time, tag, value) for time, tag, value in merged)


def _moments(tag: str, vertices: Vertices) -> Iterator[tuple[int, str, float]]:
    return ((time, tag, value) for time, value in vertices)


def _step(row: GridRow) -> StepRow:
    return StepRow(row.time_ms, row.tag, row.mean, row.max)


def _encoded(rows: Iterable[msgspec.Struct]) -> Iterator[bytes]:
    """Many rows at a time, without the brackets around them."""
    remaining = iter(rows)
    while some := list(islice(remaining, ROWS_AT_ONCE)):
        yield encode(some)[1:-1]
