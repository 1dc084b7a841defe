"""Pure: one reading of the queue, bounded, and as the fleet shares it in the row `windmill_exporter_queue`.

The stored form is versioned JSON of our own. What another version or a stranger wrote there is no reading.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from exporter.queue.samples import STALE_SECONDS
from exporter.queue.values import QueueReading, TagReading, WorkspaceWait

# A transaction's now() is its begin, so that a reading committed since then may carry a later one.
FUTURE_SECONDS = 1.0
MAX_EPOCH_SECONDS = 253_402_300_800.0
MAX_STORED_ITEMS = 10_000

_Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Time = Annotated[float, Meta(ge=0, lt=MAX_EPOCH_SECONDS)]
_Name = Annotated[str, Meta(max_length=255)]


@dataclass(frozen=True, slots=True)
class WholeQueue:
    """What one pass over the queue found, unbounded. `read_at` is the database's now() in epoch seconds."""

    read_at: float
    tags: tuple[TagReading, ...]
    workspaces: tuple[WorkspaceWait, ...]


class _StoredTag(msgspec.Struct, array_like=True, frozen=True):
    tag: _Name
    waiting: _Count
    head_since: _Time | None
    running: _Count
    workers: _Count


class _StoredWorkspace(msgspec.Struct, array_like=True, frozen=True):
    workspace: _Name
    waiting: _Count
    waiting_since: _Time


class _StoredOthers(msgspec.Struct, frozen=True):
    tags: _Count
    waiting: _Count
    running: _Count
    workspaces: _Count


class _StoredReading(msgspec.Struct, frozen=True):
    version: Literal[1]
    at: _Time
    by: _Name
    tags: Annotated[tuple[_StoredTag, ...], Meta(max_length=MAX_STORED_ITEMS)]
    workspaces: Annotated[tuple[_StoredWorkspace, ...], Meta(max_length=MAX_STORED_ITEMS)]
    drained: Annotated[tuple[_Name, ...], Meta(max_length=MAX_STORED_ITEMS)]
    others: _StoredOthers


def largest_first(tags: Iterable[TagReading], known: Collection[str]) -> list[TagReading]:
    """Largest backlog first; among equals, tags stored lately before new ones, so that the choice does not flicker."""
    return sorted(tags, key=lambda one: (-one.waiting, one.tag not in known, -one.running, one.tag))


def bounded(
    queue: WholeQueue, *, by: str, known: Collection[str], drained: tuple[str, ...], limit: int
) -> QueueReading:
    """A reading with the `limit` largest tags and workspaces, the rest summed up. `known` tags were stored lately."""
    tags = largest_first(queue.tags, known)
    workspaces = sorted(queue.workspaces, key=lambda one: (-one.waiting, one.waiting_since, one.workspace))
    rest = tags[limit:]
    return QueueReading(
        read_at=queue.read_at,
        by=by,
        tags=tuple(tags[:limit]),
        workspaces=tuple(workspaces[:limit]),
        drained=drained,
        other_tags=len(rest),
        other_waiting=sum(one.waiting for one in rest),
        other_running=sum(one.running for one in rest),
        other_workspaces=len(workspaces[limit:]),
    )


def drained_tags(queue: WholeQueue, backlog_at: Mapping[str, float], limit: int) -> tuple[str, ...]:
    """Tags without jobs now whose last known backlog (epoch seconds) is under 900 s ago; the newest `limit` of them."""
    present = {one.tag for one in queue.tags}
    oldest = queue.read_at - STALE_SECONDS
    gone = [(-at, tag) for tag, at in backlog_at.items() if at > oldest and tag not in present]
    return tuple(tag for _, tag in sorted(gone)[:limit])


def remember(backlog_at: Mapping[str, float], reading: QueueReading, limit: int) -> dict[str, float]:
    """`backlog_at` brought up to `reading`: the newest `limit` tags and when (epoch seconds) their backlog was seen."""
    oldest = reading.read_at - STALE_SECONDS
    seen = {tag: at for tag, at in backlog_at.items() if at > oldest}
    seen.update((one.tag, max(reading.read_at, seen.get(one.tag, 0.0))) for one in reading.tags if one.waiting)
    return dict(sorted(seen.items(), key=lambda item: (-item[1], item[0]))[:limit])


def is_fresh(reading: QueueReading, now: float, limit_seconds: float) -> bool:
    """Whether `reading` is at most `limit_seconds` old at `now`; one from the future is not."""
    return -FUTURE_SECONDS <= now - reading.read_at <= limit_seconds


def build_reading(reading: QueueReading) -> str:
    """The JSON text to store."""
    stored = _StoredReading(
        version=1,
        at=reading.read_at,
        by=reading.by,
        tags=tuple(_StoredTag(one.tag, one.waiting, one.head_since, one.running, one.workers) for one in reading.tags),
        workspaces=tuple(_StoredWorkspace(one.workspace, one.waiting, one.waiting_since) for one in reading.workspaces),
        drained=reading.drained,
        others=_StoredOthers(
            reading.other_tags, reading.other_waiting, reading.other_running, reading.other_workspaces
        ),
    )
    return msgspec.json.encode(stored).decode()


def parse_reading(text: str | None) -> QueueReading | None:
    """The stored reading, or None for anything that this version did not write. Never raises."""
    if text is None:
        return None
    try:
        stored = msgspec.json.decode(text, type=_StoredReading)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return None
    reading = QueueReading(
        read_at=stored.at,
        by=stored.by,
        tags=tuple(TagReading(one.tag, one.waiting, one.head_since, one.running, one.workers) for one in stored.tags),
        workspaces=tuple(WorkspaceWait(one.workspace, one.waiting, one.waiting_since) for one in stored.workspaces),
        drained=stored.drained,
        other_tags=stored.others.tags,
        other_waiting=stored.others.waiting,
        other_running=stored.others.running,
        other_workspaces=stored.others.workspaces,
    )
    return reading if _is_consistent(reading) else None


def _is_consistent(reading: QueueReading) -> bool:
    """A name twice would become a duplicate series, a head without a backlog (or without a time) a wrong delay."""
    tags = [one.tag for one in reading.tags] + list(reading.drained)
    workspaces = [one.workspace for one in reading.workspaces]
    return (
        len(set(tags)) == len(tags)
        and len(set(workspaces)) == len(workspaces)
        and all((one.head_since is None) == (one.waiting == 0) for one in reading.tags)
    )
