"""The one table of every metric family: the exposition, the reference, the dashboards and the tests read it.

Names, types, units and labels are an interface. No gauge ends in a suffix that a type reserves, but for build_info.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from exporter.metrics.values import Family, FamilyType, Origin

_declared: dict[str, Family] = {}


def _declare(family: Family) -> Family:
    if _declared.setdefault(family.name, family) is not family:
        raise ValueError(f"{family.name} is declared twice")
    return family


def _gauge(name: str, text: str, *labels: str, unit: str = "") -> Family:
    return _declare(Family(name, FamilyType.GAUGE, unit, labels, text, Origin.CLUSTER))


def _own(kind: FamilyType, name: str, text: str, *labels: str, unit: str = "") -> Family:
    return _declare(Family(name, kind, unit, labels, text, Origin.REPLICA))


# Fairness, from the database: the same on every replica.
WORKER_SECONDS = _gauge(
    "windmill_fairness_worker_seconds",
    "Worker time that the workspace held in the window.",
    "workspace",
    unit="seconds",
)
SHARE = _gauge(
    "windmill_fairness_share_ratio",
    "Share of the cluster's worker time in the window that the workspace held, 0 to 1.",
    "workspace",
    unit="ratio",
)
CAPPED = _gauge(
    "windmill_fairness_capped", "1 where the decision in force caps the workspace, 0 where it does not.", "workspace"
)
CAPPED_SINCE = _gauge(
    "windmill_fairness_capped_since_timestamp_seconds",
    "Since when the workspace is capped, by the clock of the database.",
    "workspace",
    unit="seconds",
)
WOULD_CAP = _gauge(
    "windmill_fairness_would_cap",
    "1 where this exporter would cap the workspace; exported in shadow or beside another writer.",
    "workspace",
)
WOULD_ADMISSION = _gauge(
    "windmill_fairness_would_admission_ratio",
    "Probability with which this exporter would admit a capped job; exported in shadow or beside another writer.",
    unit="ratio",
)
OTHER_WORKER_SECONDS = _gauge(
    "windmill_fairness_other_worker_seconds",
    "Worker time in the window of all workspaces that are left out of the families by workspace.",
    unit="seconds",
)
CLUSTER_WORKER_SECONDS = _gauge(
    "windmill_fairness_cluster_worker_seconds", "Worker time that everybody held in the window.", unit="seconds"
)
CAPPED_WORKSPACES = _gauge("windmill_fairness_capped_workspaces", "Workspaces capped by the decision in force.")
ADMISSION_PPM = _gauge(
    "windmill_fairness_admission_ppm",
    "Admission probability of the decision in force, in parts per 10,000 in spite of the field's name.",
)
ADMISSION = _gauge(
    "windmill_fairness_admission_ratio",
    "Probability that a pull admits a capped job now: 1 while nobody is capped or the decision is stale.",
    unit="ratio",
)
TARGET_SHARE = _gauge(
    "windmill_fairness_target_share_ratio",
    "Share that the capped workspaces get together while the others want all the rest.",
    unit="ratio",
)
EXPECTED_SHARE = _gauge(
    "windmill_fairness_expected_share_ratio",
    "Share that the admission probability gives the capped workspaces while the others want all the rest.",
    unit="ratio",
)
CAPPED_SHARE = _gauge(
    "windmill_fairness_capped_share_ratio",
    "Share that the capped workspaces really have together. Above the target is right while the others leave workers "
    "over.",
    unit="ratio",
)
MEAN_SERVICE = _gauge(
    "windmill_fairness_mean_service_seconds",
    "Mean duration of jobs completed lately in the capped and in the uncapped workspaces; absent without completions.",
    "bucket",
    unit="seconds",
)
SETTING = _gauge(
    "windmill_fairness_setting",
    "Settings in force: enabled, max_percent, duration_seconds, min_total_worker_seconds.",
    "name",
)
STATE = _gauge(
    "windmill_fairness_state",
    "1 for the present state: off (our mode), disabled (by Windmill's setting), idle (below the floor), fair (nobody "
    "over the cap), capping, stale (enabled, but nobody refreshed the decision for 60 s), failed (our last refresh).",
    "state",
)
PAYLOAD_UPDATED = _gauge(
    "windmill_fairness_payload_updated_timestamp_seconds",
    "When the stored decision was made, by the clock of the database.",
    unit="seconds",
)

# Queue, from the database.
WAITING = _gauge("windmill_queue_waiting_jobs", "Jobs of the tag that are due for over 3 s and not running.", "tag")
DELAY = _gauge(
    "windmill_queue_delay_seconds",
    "How long the job that the next pull of the tag would take has been due, at the time of the reading.",
    "tag",
    unit="seconds",
)
HEAD_SINCE = _gauge(
    "windmill_queue_head_since_timestamp_seconds",
    "Since when the job at the head of the tag is due, by the clock of the database; absent without backlog.",
    "tag",
    unit="seconds",
)
RUNNING = _gauge("windmill_queue_running_jobs", "Jobs of the tag that are running.", "tag")
WORKERS = _gauge("windmill_queue_workers", "Live workers that serve the tag: 0 says that nobody pulls its jobs.", "tag")
OTHER_WAITING = _gauge(
    "windmill_queue_other_waiting_jobs", "Waiting jobs of all tags that are left out of the families by tag."
)
WORKSPACE_WAITING = _gauge(
    "windmill_workspace_waiting_jobs", "Jobs of the workspace that are due for over 3 s and not running.", "workspace"
)
WORKSPACE_WAIT = _gauge(
    "windmill_workspace_longest_wait_seconds",
    "How long the longest waiting job of the workspace has been due, at the time of the reading.",
    "workspace",
    unit="seconds",
)

# What this replica itself did: counters start at 0 with the process.
REFRESHES = _own(
    FamilyType.COUNTER, "windmill_fairness_refreshes_total", "Cycles of this replica's fairness refresh.", "result"
)
TRANSITIONS = _own(
    FamilyType.COUNTER,
    "windmill_fairness_transitions_total",
    "Workspaces capped and uncapped by payloads that this replica wrote.",
    "transition",
)
AUDIT_FAILURES = _own(
    FamilyType.COUNTER, "windmill_fairness_audit_failures_total", "Audit rows that this replica could not write."
)
PAYLOAD_ERRORS = _own(
    FamilyType.COUNTER,
    "windmill_fairness_payload_errors_total",
    "Stored decisions and settings of an unexpected shape that this replica read.",
)
ADMISSIONS = _own(
    FamilyType.COUNTER,
    "windmill_fairness_admissions_total",
    "Pulls that the admission endpoint of this replica answered, by what it said and why.",
    "decision",
)
SAMPLES = _own(
    FamilyType.COUNTER, "windmill_queue_samples_total", "Series of this replica's queue readings by outcome.", "result"
)
UNREADABLE_SAMPLES = _own(
    FamilyType.COUNTER, "windmill_queue_unreadable_samples_total", "Stored samples that this replica could not read."
)

# The exporter itself.
BUILD_INFO = _own(
    FamilyType.GAUGE,
    "windmill_exporter_build_info",
    "Versions of this exporter; always 1.",
    "version",
    "python_version",
)
UP = _own(FamilyType.GAUGE, "windmill_exporter_up", "1 while the database can be reached.")
COLLECTOR_SUCCESS = _own(
    FamilyType.GAUGE,
    "windmill_exporter_collector_success",
    "1 while the collector's last run succeeded and what it read is fresh.",
    "collector",
)
COLLECTOR_LAST_SUCCESS = _own(
    FamilyType.GAUGE,
    "windmill_exporter_collector_last_success_timestamp_seconds",
    "When the collector last succeeded, by the clock of this replica; 0 for never.",
    "collector",
    unit="seconds",
)
COLLECTOR_DURATION = _own(
    FamilyType.HISTOGRAM,
    "windmill_exporter_collector_duration_seconds",
    "Time that one run of the collector took.",
    "collector",
    unit="seconds",
)
COLLECTOR_FAILURES = _own(
    FamilyType.COUNTER,
    "windmill_exporter_collector_failures_total",
    "Runs of the collector that failed, by reason.",
    "collector",
    "reason",
)
RELOAD_SUCCESSFUL = _own(
    FamilyType.GAUGE, "windmill_exporter_config_last_reload_successful", "1 while the last configuration read was good."
)
RELOAD_LAST_SUCCESS = _own(
    FamilyType.GAUGE,
    "windmill_exporter_config_last_reload_success_timestamp_seconds",
    "When the configuration was last read successfully, by the clock of this replica.",
    unit="seconds",
)
WEB_CONFIG_SUCCESSFUL = _own(
    FamilyType.GAUGE,
    "windmill_exporter_web_config_last_reload_successful",
    "1 while the web config file and its certificates in force are those on the disk, 0 while those cannot be used.",
)
POOL_CONNECTIONS = _own(
    FamilyType.GAUGE, "windmill_exporter_database_pool_connections", "Open database connections by state.", "state"
)
HTTP_DURATION = _own(
    FamilyType.HISTOGRAM,
    "windmill_exporter_http_request_duration_seconds",
    "Time until an HTTP request was answered.",
    "route",
    "status_class",
    unit="seconds",
)
SERIES_DROPPED = _own(
    FamilyType.GAUGE,
    "windmill_exporter_series_dropped",
    "Label values that the limits on workspaces and tags leave out of the family now.",
    "family",
)

# Basics under the names that every Prometheus client gives them.
_own(FamilyType.COUNTER, "process_cpu_seconds_total", "User and system CPU time of the process.", unit="seconds")
_own(FamilyType.GAUGE, "process_max_fds", "Maximum number of open file descriptors.")
_own(FamilyType.GAUGE, "process_open_fds", "Open file descriptors.")
_own(FamilyType.GAUGE, "process_resident_memory_bytes", "Resident memory of the process.", unit="bytes")
_own(FamilyType.GAUGE, "process_start_time_seconds", "When the process started.", unit="seconds")
_own(FamilyType.GAUGE, "process_virtual_memory_bytes", "Virtual memory of the process.", unit="bytes")
_own(FamilyType.COUNTER, "python_gc_collections_total", "Runs of the garbage collector.", "generation")
_own(FamilyType.COUNTER, "python_gc_objects_collected_total", "Objects that it collected.", "generation")
_own(FamilyType.COUNTER, "python_gc_objects_uncollectable_total", "Objects that it could not collect.", "generation")

FAMILIES: Mapping[str, Family] = MappingProxyType(dict(sorted(_declared.items())))
"""Every family by its name, in the order of names."""

LIMITED = tuple(name for name, family in FAMILIES.items() if family.labels in {("workspace",), ("tag",)})
"""The families of which the limits on workspaces and tags can leave series out."""
