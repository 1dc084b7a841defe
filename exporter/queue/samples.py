"""Pure: what a stored sample means, and when a reading of a series becomes a new one.

Times are epoch seconds of the database. A sample is held (its value stays) or climbing (the head of the queue has
waited since a moment and still waits, so that its value grows by itself).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from exporter.database.stored_json import decode_json

MIN_SPACING_SECONDS: Final = 25.0
HEARTBEAT_SECONDS: Final = 300.0
STALE_SECONDS: Final = 900.0
SAME_HEAD_SECONDS: Final = 1.0
DELAY_TOLERANCE: Final = 0.1
COUNT_PREFIX: Final = "queue_count_"
DELAY_PREFIX: Final = "queue_delay_"


class Kind(StrEnum):
    """What a series measures: the number of waiting jobs, or how long the head is due, in seconds."""

    COUNT = "count"
    DELAY = "delay"

    def series_id(self, tag: str) -> str:
        """The id of the series of `tag` in the table `metrics`."""
        return (COUNT_PREFIX if self is Kind.COUNT else DELAY_PREFIX) + tag


@dataclass(frozen=True, slots=True)
class Held:
    """The value stays as written: a count, or a delay in seconds."""

    value: float


@dataclass(frozen=True, slots=True)
class Climbing:
    """The head has waited since this moment and still waits."""

    since: float


@dataclass(frozen=True, slots=True)
class HeldSince:
    """To be stored as a held delay: the INSERT takes its own now() minus this moment."""

    head_since: float


@dataclass(frozen=True, slots=True)
class Sample:
    """One stored row that could be read."""

    at: float
    value: Held | Climbing


@dataclass(frozen=True, slots=True)
class Backlog:
    """The reading of one tag that has a backlog: waiting jobs, and since when its head is due."""

    count: int
    head_since: float


NewSample: TypeAlias = Held | Climbing | HeldSince


def split_id(series_id: str) -> tuple[Kind, str] | None:
    """Kind and tag of a series; None for an id of anything else. A tag may hold any character."""
    if series_id.startswith(COUNT_PREFIX):
        return Kind.COUNT, series_id[len(COUNT_PREFIX) :]
    if series_id.startswith(DELAY_PREFIX):
        return Kind.DELAY, series_id[len(DELAY_PREFIX) :]
    return None


def parse_value(text: str) -> Held | Climbing | None:
    """The meaning of a stored JSON text, or None when it is unreadable. Never raises."""
    stored = decode_json(text)
    if isinstance(stored, dict):
        since = _finite(stored.get("since"))
        return None if since is None else Climbing(since)
    value = _finite(stored)
    return None if value is None else Held(value)


def value_at(sample: Sample, time: float) -> float:
    """What the series draws at `time`, by this sample. May be below 0; clamping belongs to drawing and export."""
    match sample.value:
        case Held(value):
            return value
        case Climbing(since):
            return time - since


def head_since(sample: Sample) -> float:
    """Since when the head waited that a delay sample saw."""
    match sample.value:
        case Held(value):
            return sample.at - value
        case Climbing(since):
            return since


def should_store(kind: Kind, now: float, last: Sample | None, backlog: Backlog | None) -> bool:
    """Whether the reading becomes a row.

    `last` is the newest readable sample of the last 900 s; `backlog` is None when nothing waits.
    """
    if last is None:
        return backlog is not None
    drawn = value_at(last, now)
    if backlog is None:
        return drawn != 0
    age = now - last.at
    if age >= HEARTBEAT_SECONDS:
        return True
    if age < MIN_SPACING_SECONDS:
        return False
    if kind is Kind.COUNT:
        return backlog.count != drawn
    return abs(now - backlog.head_since - drawn) > DELAY_TOLERANCE * abs(drawn)


def delay_sample(last: Sample | None, backlog: Backlog) -> Climbing | HeldSince:
    """Climbing while the same job, or jobs queued together with it, stays at the head; held otherwise and at first."""
    if last is not None and abs(head_since(last) - backlog.head_since) < SAME_HEAD_SECONDS:
        return Climbing(backlog.head_since)
    return HeldSince(backlog.head_since)


def new_sample(kind: Kind, now: float, last: Sample | None, backlog: Backlog | None) -> NewSample | None:
    """The sample to store now, or None."""
    if not should_store(kind, now, last, backlog):
        return None
    if backlog is None:
        return Held(0)
    if kind is Kind.COUNT:
        return Held(backlog.count)
    return delay_sample(last, backlog)


def _finite(stored: object) -> float | None:
    if isinstance(stored, bool) or not isinstance(stored, int | float):
        return None
    try:
        number = float(stored)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
