"""The values of the queue domain: immutable, times in epoch seconds of the database."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class QueueMode(StrEnum):
    """What the exporter may do: nothing; read the backlog; or also store samples and delete expired ones."""

    OFF = "off"
    OBSERVE = "observe"
    SAMPLE = "sample"


@dataclass(frozen=True, slots=True)
class TagReading:
    """One tag: jobs waiting (due for over 3 s), since when its head is due, jobs running, live workers serving it.

    `head_since` is None exactly when `waiting` is 0.
    """

    tag: str
    waiting: int
    head_since: float | None
    running: int
    workers: int


@dataclass(frozen=True, slots=True)
class WorkspaceWait:
    """One workspace: its waiting jobs, and since when its longest waiting one is due."""

    workspace: str
    waiting: int
    waiting_since: float


@dataclass(frozen=True, slots=True)
class QueueReading:
    """One pass over the queue: the tags with jobs waiting or running, and the workspaces with jobs waiting.

    Both largest first and bounded by `queue.max_stored_tags`; the `other_...` fields sum up the rest.
    `drained` are tags without jobs now that had a backlog within the stale window (900 s): exported as 0.
    """

    read_at: float
    by: str
    tags: tuple[TagReading, ...]
    workspaces: tuple[WorkspaceWait, ...]
    drained: tuple[str, ...] = ()
    other_tags: int = 0
    other_waiting: int = 0
    other_running: int = 0
    other_workspaces: int = 0


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """The newest reading of the queue, ours or another replica's.

    `now` is the database's time when this process saw it, and `observed_monotonic` this process's own at that moment.
    How old the reading is follows from both and its `read_at`: one that nobody renews goes stale, however often it is
    seen.
    """

    mode: QueueMode
    now: float
    observed_monotonic: float
    interval_seconds: float
    reading: QueueReading


class SampleResult(StrEnum):
    """What became of one series in one tick, as counted by `windmill_queue_samples_total`."""

    STORED = "stored"
    UNCHANGED = "unchanged"
    SKIPPED_LONG_TAG = "skipped_long_tag"
    SKIPPED_OVER_LIMIT = "skipped_over_limit"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True)
class QueueOutcome:
    """What one tick did. `samples` counts series of this tick; `unreadable_samples` rows seen for the first time.

    `skipped_tags` have a backlog but are too long to be stored; None when this tick had nothing to store, since another
    replica did. `snapshot` is None when nothing was learnt.
    """

    snapshot: QueueSnapshot | None
    samples: tuple[tuple[SampleResult, int], ...] = ()
    unreadable_samples: int = 0
    skipped_tags: tuple[str, ...] | None = None
