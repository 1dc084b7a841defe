"""The values of the fairness domain: immutable, with their units in the names.

Worker time is counted in integer microseconds, so that equal tenants tie exactly at the threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

MICROS = 1_000_000
EPSILON_PERCENT = 5
ADMIT_ALL_PPM = 10_000
MAX_CAPPED_WORKSPACES = 64


class FairnessMode(StrEnum):
    """What the exporter may do: nothing; read and say what it would do; or refresh Windmill's payload."""

    OFF = "off"
    SHADOW = "shadow"
    ENFORCE = "enforce"


class FairnessState(StrEnum):
    """The present state in one word, as exported by `windmill_fairness_state`."""

    OFF = "off"
    DISABLED = "disabled"
    IDLE = "idle"
    FAIR = "fair"
    CAPPING = "capping"
    STALE = "stale"
    FAILED = "failed"


class Admission(StrEnum):
    """What one pull is told, as counted by `windmill_fairness_admissions_total`. Only `EXCLUDED` holds anybody back.

    In this order: the mode is off; the mode is shadow; nobody is capped; the decision is too old; the draw admitted
    the capped workspaces; the draw left them out.
    """

    OFF = "off"
    SHADOW = "shadow"
    NOBODY_CAPPED = "nobody_capped"
    STALE = "stale"
    ADMITTED = "admitted"
    EXCLUDED = "excluded"


class SettingSource(StrEnum):
    """Where the value of a setting in force comes from."""

    FILE = "file"
    DATABASE = "database"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class FairnessSettings:
    """Windmill's four settings as in force. `max_percent` 1..100; `window_seconds` 1..86400."""

    enabled: bool = False
    max_percent: int = 50
    window_seconds: int = 10
    min_total_worker_seconds: int = 4
    sources: Mapping[str, SettingSource] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """Jobs completed in the service-time sample: their number and the sum of their unclamped durations."""

    jobs: int = 0
    seconds: float = 0.0

    @property
    def mean_seconds(self) -> float | None:
        """D_c or D_u; None without completions."""
        return self.seconds / self.jobs if self.jobs and self.seconds > 0 else None


@dataclass(frozen=True, slots=True)
class WorkspaceUsage:
    """One workspace in the window: worker time held, and its completions of the service-time sample."""

    workspace: str
    worker_micros: int
    service: ServiceTimes

    @property
    def worker_seconds(self) -> float:
        """Worker time held in the window, in seconds."""
        return self.worker_micros / MICROS


@dataclass(frozen=True, slots=True)
class Payload:
    """The decision in Windmill's shape: capped workspaces (largest first) and p_c in parts per 10,000."""

    overloaded: tuple[str, ...] = ()
    admission_ppm: int = ADMIT_ALL_PPM


@dataclass(frozen=True, slots=True)
class Decision:
    """What one reading says should be done: the capped set, the admission probability and what led to it."""

    payload: Payload
    target_share: float
    admission: float
    expected_share: float | None
    capped_service: ServiceTimes
    uncapped_service: ServiceTimes


@dataclass(frozen=True, slots=True)
class OwedAudit:
    """A transition whose audit row could not be written yet. `at` is in epoch seconds of the database."""

    operation: str
    workspace: str
    at: float
    parameters: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class FairnessReading:
    """One aggregation of the whole cluster: usage by workspace, when (database epoch seconds) and by whom.

    `usage` holds the largest workspaces, largest first; the `other_...` fields sum up the rest. `decided` is the
    payload that its writer stored with it, None when it was read for the reading alone.
    """

    read_at: float
    by: str
    window_seconds: int
    usage: tuple[WorkspaceUsage, ...]
    other_micros: int = 0
    other_workspaces: int = 0
    other_service: ServiceTimes = field(default_factory=ServiceTimes)
    capped_since: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    owed: tuple[OwedAudit, ...] = ()
    decided: Payload | None = None

    @property
    def total_micros(self) -> int:
        """Everybody's worker time in the window, in microseconds."""
        return self.other_micros + sum(usage.worker_micros for usage in self.usage)


@dataclass(frozen=True, slots=True)
class FairnessSnapshot:
    """Everything the last cycle knows, replaced whole. Times are database epoch seconds unless said otherwise.

    `in_force` is the stored decision while fairness is enabled (empty and admitting all otherwise);
    `would` is what this exporter decides from `reading`, exported in shadow or beside another writer.
    """

    mode: FairnessMode
    settings: FairnessSettings
    now: float
    observed_monotonic: float
    in_force: Payload
    in_force_since: Mapping[str, float]
    payload_at: float | None
    payload_age_seconds: float | None
    reading: FairnessReading | None
    would: Decision | None
    refreshed_by: str | None
    interval_seconds: float = 5.0


class RefreshResult(StrEnum):
    """How one cycle of this replica ended, as counted by `windmill_fairness_refreshes_total`."""

    WON = "won"
    LOST = "lost"
    OBSERVED = "observed"
    SKIPPED = "skipped"
    ERROR = "error"
    TIMEOUT = "timeout"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True)
class RefreshOutcome:
    """What one cycle did. Counts are of this cycle alone; `snapshot` is None when nothing new was learnt."""

    result: RefreshResult
    snapshot: FairnessSnapshot | None = None
    capped: tuple[str, ...] = ()
    uncapped: tuple[str, ...] = ()
    audit_failures: int = 0
    payload_errors: int = 0
