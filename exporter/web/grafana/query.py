"""Reads what one request of Grafana for data needs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from time import time

from aiohttp import web

from exporter.errors import DatabaseTimeout
from exporter.metrics.freshness import freshness
from exporter.queue.grid import MAX_TAGS as MAX_GRID_TAGS
from exporter.queue.history import Kind, Line
from exporter.queue.render import Window
from exporter.queue.window import resolve
from exporter.web.current_queue import current_tags, fresh_reading
from exporter.web.errors import NotReady
from exporter.web.grafana.answer import Entry, grid_entries, highest, series_entries
from exporter.web.grafana.metrics import Form
from exporter.web.grafana.request import MIN_SLOTS, Query, Target
from exporter.web.grafana.tables import events_table, queue_table, shares_table
from exporter.web.grafana.tags import Tags, admitted
from exporter.web.keys import BOARD, HISTORY_DEADLINE_SECONDS, KNOWN_TAGS, MONOTONIC, READERS


@dataclass(frozen=True, slots=True)
class _Drawing:
    """What was drawn for all targets of a request together."""

    lines: Sequence[Line] = ()
    from_ms: int = 0


async def read_entries(request: web.Request, query: Query) -> Iterator[Entry]:
    """The entries that answer `query`, each made when its turn comes.

    Raises `BadRequest`, `NotReady`, and `DatabaseError` within the deadline, however many targets there are.
    """
    seconds = request.app[HISTORY_DEADLINE_SECONDS]
    try:
        async with asyncio.timeout(seconds) as deadline:
            drawing = await _draw(request.app, query)
            answers = [await _answer(request, query, target, drawing) for target in query.targets]
    except TimeoutError:
        if not deadline.expired():
            raise
        raise DatabaseTimeout(f"no answer from the database within {seconds:g} s", reason="deadline") from None
    return chain.from_iterable(answers)


async def _answer(request: web.Request, query: Query, target: Target, drawing: _Drawing) -> Iterable[Entry]:
    match target.metric.form:
        case Form.LINES:
            return series_entries(target, drawing.lines, drawing.from_ms)
        case Form.GRID:
            return await _grid(request.app, query, target)
        case Form.QUEUE_CURRENT:
            reading = fresh_reading(request)
            return [queue_table(target, reading.read_at, current_tags(reading), query.filters)]
        case Form.FAIRNESS_SHARES:
            return [_shares(request, target)]
        case Form.FAIRNESS_EVENTS:
            window = _window(query)
            events = await request.app[READERS].events.latest()
            return [events_table(target, events, window.from_ms, window.to_ms)]


async def _draw(app: web.Application, query: Query) -> _Drawing:
    """The lines of all targets, from one statement: the targets of a panel mostly ask for the same tags."""
    targets = [target for target in query.targets if target.metric.form is Form.LINES]
    tags = await _chosen(app, query, targets)
    if tags == ():
        return _Drawing()
    kinds = {target.metric.kind for target in targets if target.metric.kind is not None}
    drawn = await app[READERS].history.series(query.window, slots=query.slots, kinds=kinds, tags=tags)
    return _Drawing(drawn.lines, drawn.window.from_ms)


async def _grid(app: web.Application, query: Query, target: Target) -> Iterable[Entry]:
    """The means of one target. Of more tags than a grid may have, those whose lines peak highest."""
    kind = target.metric.kind or Kind.COUNT
    chosen = await _chosen(app, query, [target])
    tags = await app[KNOWN_TAGS].all() if chosen is None else chosen
    history, left_out = app[READERS].history, 0
    if len(tags) > MAX_GRID_TAGS:
        drawn = await history.series(query.window, slots=MIN_SLOTS, kinds={kind}, tags=tags)
        peaks = [line.vertices.peak for line in drawn.lines]
        tags = [drawn.lines[index].tag for index in highest(peaks, min(target.limit or MAX_GRID_TAGS, MAX_GRID_TAGS))]
        left_out = len(drawn.lines) - len(tags)
    if not tags:
        return ()
    window = _window(query)
    step_seconds = ceil((window.to_ms - window.from_ms) / query.slots) / 1000
    return grid_entries(target, await history.grid(query.window, step_seconds, kind, tags), left_out)


async def _chosen(app: web.Application, query: Query, targets: Sequence[Target]) -> Tags | None:
    """The tags to read for `targets`, of which each picks its own later; None: all."""
    every = any(target.tags is None for target in targets)
    if every and not query.filters:
        return None
    named = dict.fromkeys(tag for target in targets for tag in target.tags or ())
    if not every and not named:
        return ()
    tags = await app[KNOWN_TAGS].all() if every else await app[KNOWN_TAGS].among(named)
    return admitted(tags, query.filters)


def _shares(request: web.Request, target: Target) -> Entry:
    snapshot = request.app[BOARD].current
    fairness = snapshot.fairness
    if snapshot.collector("fairness") is None:
        raise NotReady("The shares are not read here: fairness.mode is off.")
    if fairness is None or fairness.reading is None:
        raise NotReady("The shares were not read yet.")
    if not freshness(snapshot, fairness.mode, request.app[MONOTONIC]()).usage:
        raise NotReady("The last reading of the shares is too old to be shown.")
    return shares_table(target, fairness, fairness.reading)


def _window(query: Query) -> Window:
    """The window by this host's clock, for what needs no more; nothing that a client may ask for is after its now."""
    return resolve(query.window, now=max(time(), (query.window.to_ms or 0) / 1000), slots=query.slots)
