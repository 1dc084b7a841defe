"""The queue as it was read last, for handlers: from memory, and only while it is fresh."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from exporter.queue.values import QueueReading, TagReading
from exporter.snapshot import is_stale
from exporter.web.errors import NotReady
from exporter.web.keys import BOARD, MONOTONIC


@dataclass(frozen=True, slots=True)
class CurrentTag:
    """One tag now; `delay_seconds` is None without a backlog."""

    tag: str
    waiting: int
    delay_seconds: float | None
    running: int
    workers: int


def fresh_reading(request: web.Request) -> QueueReading:
    """The newest reading of the queue. Raises `NotReady` while there is none, or only an old one."""
    snapshot = request.app[BOARD].current
    status = snapshot.collector("queue")
    if status is None:
        raise NotReady("The queue is not read here: queue.mode is off.")
    queue = snapshot.queue
    if queue is None:
        raise NotReady(f"The queue was not read yet{_because(status.problem)}.")
    if is_stale(queue.observed_monotonic, queue.interval_seconds, request.app[MONOTONIC]()):
        raise NotReady(f"The last reading of the queue is too old to be shown{_because(status.problem)}.")
    return queue.reading


def current_tags(reading: QueueReading) -> list[CurrentTag]:
    """Every tag with jobs waiting or running, in code point order; waits are as of the reading."""
    shown = (one for one in reading.tags if one.waiting or one.running)
    return [_current(one, reading.read_at) for one in sorted(shown, key=lambda one: one.tag)]


def _current(one: TagReading, read_at: float) -> CurrentTag:
    delay = None if one.head_since is None else max(0.0, read_at - one.head_since)
    return CurrentTag(one.tag, one.waiting, delay, one.running, one.workers)


def _because(problem: str | None) -> str:
    return "" if problem is None else f": {problem}"
