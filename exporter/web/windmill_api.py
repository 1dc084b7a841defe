"""Windmill's own shapes under `/api/workers`, so that a client generated for Windmill reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby, islice
from typing import Final, TypeAlias

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from exporter.fairness.events import Event
from exporter.queue.history import Drawn, Kind, Line, StoredSeries
from exporter.queue.nudge import nudged
from exporter.queue.render import Vertex
from exporter.queue.window import MAX_SLOTS
from exporter.web.answers import json_answer
from exporter.web.current_queue import CurrentTag, current_tags, fresh_reading
from exporter.web.keys import READERS
from exporter.web.streams import joined, stream_json
from exporter.web.windows import parse_choice, parse_windmill_window

Draw: TypeAlias = Callable[[Line], Iterable[Vertex]]

EPOCH: Final = datetime.fromtimestamp(0, UTC)
ROWS_AT_ONCE: Final = 1000
encode: Final = msgspec.json.encode


class StoredValue(msgspec.Struct, frozen=True):
    """One stored row."""

    value: float
    created_at: str


class TagStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """One tag now."""

    tag: str
    waiting: int
    running: int
    workers: int
    delay: float | None = None


async def queue_metrics_series(request: web.Request) -> web.StreamResponse:
    """Every tag's lines in a window, to the vertex; `ties=nudge` makes the times rise strictly."""
    window = parse_windmill_window(request.query)
    ties = parse_choice(request.query, "ties", ("exact", "nudge"))
    drawn = await request.app[READERS].history.series(window, slots=MAX_SLOTS, kinds=tuple(Kind), tags=None)
    return await stream_json(request, nudged_pieces(drawn) if ties == "nudge" else exact_pieces(drawn))


async def queue_metrics(request: web.Request) -> web.StreamResponse:
    """The stored rows of 14 days by series."""
    return await stream_json(request, _stored_pieces(await request.app[READERS].history.stored()))


async def queue_status(request: web.Request) -> web.StreamResponse:
    """Every tag with jobs waiting or running."""
    tags = current_tags(fresh_reading(request))
    return await stream_json(request, joined(encode(_status(one)) for one in tags))


async def queue_counts(request: web.Request) -> web.Response:
    """Waiting jobs by tag."""
    return json_answer({one.tag: one.waiting for one in current_tags(fresh_reading(request)) if one.waiting})


async def queue_running_counts(request: web.Request) -> web.Response:
    """Running jobs by tag."""
    return json_answer({one.tag: one.running for one in current_tags(fresh_reading(request)) if one.running})


async def workspace_fairness_events(request: web.Request) -> web.StreamResponse:
    """The latest transitions into and out of the capped set, newest first."""
    latest = await request.app[READERS].events.latest()
    return await stream_json(request, joined(encode(_event(one)) for one in latest))


WINDMILL_ROUTES: Final[dict[str, Handler]] = {
    "/api/workers/queue_metrics_series": queue_metrics_series,
    "/api/workers/queue_metrics": queue_metrics,
    "/api/workers/queue_status": queue_status,
    "/api/workers/queue_counts": queue_counts,
    "/api/workers/queue_running_counts": queue_running_counts,
    "/api/workers/workspace_fairness_events": workspace_fairness_events,
}


def exact_pieces(drawn: Drawn) -> Iterator[bytes]:
    """The answer to the vertex: a vertical's ends share their time."""
    return _series_pieces(drawn, lambda line: line.vertices)


def nudged_pieces(drawn: Drawn) -> Iterator[bytes]:
    """The answer with strictly rising times."""
    return _series_pieces(drawn, lambda line: nudged(line.vertices, drawn.window.from_ms))


def _series_pieces(drawn: Drawn, draw: Draw) -> Iterator[bytes]:
    yield b'{"from":%d,"to":%d,"tags":' % (drawn.window.from_ms, drawn.window.to_ms)
    yield from joined(_tag(tag, lines, draw) for tag, lines in groupby(drawn.lines, lambda line: line.tag))
    yield b"}"


def _tag(tag: str, lines: Iterable[Line], draw: Draw) -> bytes:
    drawn = dict.fromkeys(Kind, b"[]") | {line.kind: encode(list(draw(line))) for line in lines}
    return b'{"tag":%b,"count":%b,"delay":%b}' % (encode(tag), drawn[Kind.COUNT], drawn[Kind.DELAY])


def _stored_pieces(stored: Iterable[StoredSeries]) -> Iterator[bytes]:
    opening = b"["
    for series in stored:
        yield opening + b'{"id":%b,"values":' % encode(series.id)
        yield from joined(_stored_values(series))
        yield b"}"
        opening = b","
    yield b"]" if opening == b"," else b"[]"


def _stored_values(series: StoredSeries) -> Iterator[bytes]:
    rows = series.rows()
    while some := [StoredValue(max(value, 0.0), _timestamp(at)) for at, value in islice(rows, ROWS_AT_ONCE)]:
        yield encode(some)[1:-1]


def _status(one: CurrentTag) -> TagStatus:
    return TagStatus(one.tag, one.waiting, one.running, one.workers, one.delay_seconds)


def _event(event: Event) -> dict[str, object]:
    return {
        "timestamp": _timestamp(event.at),
        "operation": event.operation,
        "workspace_id": event.workspace,
        "parameters": event.parameters,
    }


def _timestamp(at: float) -> str:
    """Epoch seconds as Windmill writes a moment."""
    moment = EPOCH + timedelta(microseconds=round(at * 1e6))
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
