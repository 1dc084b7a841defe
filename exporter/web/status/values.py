"""What the page shows, before it is HTML. Ratios are 0..1, times epoch seconds, ages and durations seconds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from exporter.fairness.values import FairnessMode, FairnessState
from exporter.web.status.wording import Sentence


@dataclass(frozen=True, slots=True)
class Clocks:
    """When the page is made: this host's monotonic clock, and its wall clock in epoch seconds."""

    monotonic: float
    epoch: float


@dataclass(frozen=True, slots=True)
class Moment:
    """A time, and how long ago it was by the same clock."""

    at: float
    age_seconds: float


class Mark(StrEnum):
    """What the decision means for one workspace: nothing, capped by the one in force, or capped if we decided."""

    NONE = "none"
    CAPPED = "capped"
    WOULD_BE_CAPPED = "would"


@dataclass(frozen=True, slots=True)
class ShareRow:
    """One workspace. Without jobs waiting `longest_wait_seconds` is None."""

    workspace: str
    share: float
    worker_seconds: float
    mark: Mark
    since: Moment | None
    waiting: int
    longest_wait_seconds: float | None


@dataclass(frozen=True, slots=True)
class Shares:
    """The window's worker time by workspace, and the rest summed up."""

    read: Moment
    rows: tuple[ShareRow, ...]
    cap: float
    window_seconds: int
    total_worker_seconds: float
    floor_worker_seconds: int
    other_workspaces: int
    other_share: float


@dataclass(frozen=True, slots=True)
class Sparkline:
    """A line in the frame of `lines.py`; `peak` is the value at its top, reached first at `peak_at`."""

    points: tuple[tuple[float, float], ...]
    peak: float
    peak_at: float
    last: float


@dataclass(frozen=True, slots=True)
class TagRow:
    """One tag. `delay_seconds` is how long its head has been due; None without backlog. `workers` None: not read."""

    tag: str
    waiting: int
    delay_seconds: float | None
    running: int
    workers: int | None
    line: Sparkline | None

    @property
    def unattended(self) -> bool:
        """Whether jobs wait and no live worker takes them now (which may be a group scaled to zero for a moment)."""
        return self.waiting > 0 and self.workers == 0


@dataclass(frozen=True, slots=True)
class Tags:
    """The backlog by tag, and the rest summed up. `has_lines` says that stored series were read."""

    read: Moment
    rows: tuple[TagRow, ...]
    other_tags: int
    other_waiting: int
    other_running: int
    has_lines: bool


@dataclass(frozen=True, slots=True)
class Transition:
    """A workspace was capped, or a cap ended."""

    when: Moment
    workspace: str
    capped: bool


class Health(StrEnum):
    """How a collector does, in words."""

    WORKING = "working"
    FAILING = "failing"
    STALE = "stale"
    STARTING = "not read yet"


@dataclass(frozen=True, slots=True)
class CollectorRow:
    """One collector, what it reads, and when it last succeeded."""

    name: str
    purpose: str
    health: Health
    last_success: Moment | None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something wrong: whom it concerns, the sentence that names it, and what to do (empty where it says so itself)."""

    concerns: tuple[str, ...]
    sentence: str
    advice: str


@dataclass(frozen=True, slots=True)
class Page:
    """The whole page in its order. An absent part is told by its `without_...` sentence."""

    at: float
    state: FairnessState
    mode: FairnessMode
    headline: Sentence
    remarks: tuple[Sentence, ...]
    shares: Shares | None
    without_shares: str
    edition_note: str
    tags: Tags | None
    without_tags: str
    transitions: tuple[Transition, ...] | None
    collectors: tuple[CollectorRow, ...]
    troubles: tuple[Trouble, ...]
