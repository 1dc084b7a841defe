"""Alert rules. Each holds long enough that one bad reading, a restart or a scale-up wakes nobody."""

from __future__ import annotations

from dataclasses import dataclass

from dashboards.panel import Json
from dashboards.promql import RULES
from dashboards.recording_rules import recorded
from exporter.metrics import families

CAPPED = recorded(families.CAPPED, "workspace")
ANYBODY_CAPPED = f"{recorded(families.CAPPED_WORKSPACES)} > 0"
WORKSPACE_WAIT = recorded(families.WORKSPACE_WAIT, "workspace")
OTHERS_WAIT = f"({WORKSPACE_WAIT} unless {RULES.on('workspace')} ({CAPPED} == 1))"

QUIET_WAIT_SECONDS = 120
TAG_WAIT_SECONDS = 600
SHARE_MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert: fires when `expression` has held for `hold`. `description` ends with what to do."""

    name: str
    severity: str
    hold: str
    expression: str
    summary: str
    description: str

    def to_json(self) -> Json:
        """The rule as Prometheus reads it."""
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": self.hold,
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "description": self.description},
        }


FAIRNESS = (
    Alert(
        "WindmillWorkspaceCappedForLong",
        "warning",
        "30m",
        f"max_over_time({CAPPED}[5m]) == 1",
        "Workspace {{ $labels.workspace }} has been capped for over 30 minutes",
        "Interruptions of less than 5 minutes count as capped. The workspace needs more than its share for long: give "
        "it workers of its own, spread its jobs, or raise workspace_fairness_max_percent.",
    ),
    Alert(
        "WindmillQuietWorkspaceWaits",
        "warning",
        "5m",
        f"{OTHERS_WAIT} > {QUIET_WAIT_SECONDS} and on (job) ({ANYBODY_CAPPED})",
        "Workspace {{ $labels.workspace }} waits for {{ $value | humanizeDuration }} while somebody else is capped",
        f"It is not capped, yet a job of it has been due for over {QUIET_WAIT_SECONDS} s although a cap is in force. "
        "Look whether its tags have a worker, then whether the dispatchers honour the decision.",
    ),
    Alert(
        "WindmillTagWaitsWhileCapped",
        "warning",
        "10m",
        f"{recorded(families.DELAY, 'tag')} > {TAG_WAIT_SECONDS} and {RULES.on('tag')} "
        f"({recorded(families.WORKERS, 'tag')} > 0) and on (job) ({ANYBODY_CAPPED})",
        "The head of tag {{ $labels.tag }} has waited for {{ $value | humanizeDuration }} while somebody is capped",
        f"The tag has workers, and the next job of it has been due for over {TAG_WAIT_SECONDS} s. If it belongs to a "
        "capped workspace the cap does that; otherwise the workers of the tag are too few.",
    ),
    Alert(
        "WindmillCapDoesNotHold",
        "warning",
        "15m",
        f"{recorded(families.CAPPED_SHARE)} > {recorded(families.TARGET_SHARE)} + {SHARE_MARGIN} "
        f"and on (job) ({ANYBODY_CAPPED}) and on (job) (max by (job) {OTHERS_WAIT} > {QUIET_WAIT_SECONDS})",
        "The capped workspaces hold {{ $value | humanizePercentage }} of the workers while others wait",
        "They hold clearly more than the target, and not because workers would idle otherwise. Look whether every "
        "dispatcher honours the decision, and compare the predicted with the actual share.",
    ),
    Alert(
        "WindmillFairnessStale",
        "critical",
        "2m",
        RULES.gauge(families.STATE, where='state="stale"') + " == 1",
        "Nobody renews the fairness decision of {{ $labels.job }}",
        "Fairness is enabled, but the stored decision is over a minute old, so dispatchers admit everybody. Look "
        "whether a replica in enforce mode (or Windmill's own refresh) runs and can write background_task_state.",
    ),
    Alert(
        "WindmillFairnessAuditFailing",
        "warning",
        "0m",
        RULES.increase(families.AUDIT_FAILURES, window="15m") + " > 0",
        "Cap transitions of {{ $labels.job }} cannot be written to the audit log",
        "The decision itself is in force, and the rows are kept and written later. Look for a missing partition or "
        "privilege of audit_partitioned; the log of the exporter names it.",
    ),
)

QUEUE = (
    Alert(
        "WindmillTagWithoutWorker",
        "warning",
        "10m",
        f"{recorded(families.WAITING, 'tag')} > 0 and {RULES.on('tag')} ({recorded(families.WORKERS, 'tag')} == 0)",
        "{{ $value }} jobs of tag {{ $labels.tag }} wait, and no worker serves it",
        "For 10 minutes no live worker has listed exactly this tag: long enough for a group to scale up from zero. "
        "Start a worker group with the tag, or correct the tag of the jobs.",
    ),
    Alert(
        "WindmillQueueReadingFailing",
        "critical",
        "5m",
        RULES.best(families.COLLECTOR_SUCCESS, where='collector="queue"') + " == 0",
        "No replica of {{ $labels.job }} reads the queue",
        "The backlog is unknown, and in sample mode the stored history has a hole from now on. The log of the "
        "exporter names the reason.",
    ),
    Alert(
        "WindmillQueueSamplesSkipped",
        "warning",
        "15m",
        RULES.increase(families.SAMPLES, "result", window="15m", where='result=~"skipped_.*"') + " > 0",
        "Queue samples of {{ $labels.job }} are not stored ({{ $labels.result }})",
        "skipped_long_tag: a tag's name is too long for the table metrics. skipped_over_limit: more tags than "
        "queue.max_stored_tags have a backlog. Their history is missing; the gauges are not affected.",
    ),
)

SELF = (
    Alert(
        "WindmillExporterDown",
        "warning",
        "5m",
        f"up == 0 and on (job, instance) last_over_time({families.BUILD_INFO.name}[1d])",
        "windmill-exporter {{ $labels.instance }} does not answer",
        "Prometheus cannot scrape a target that was a windmill-exporter within the last day.",
    ),
    Alert(
        "WindmillExporterAbsent",
        "critical",
        "10m",
        f"absent({families.UP.name})",
        "No windmill-exporter is scraped",
        "Nothing watches Windmill's fairness and queues now. Look at the targets of Prometheus, then at the pods.",
    ),
    Alert(
        "WindmillDatabaseUnreachable",
        "critical",
        "5m",
        f"{families.UP.name} == 0",
        "{{ $labels.instance }} cannot reach Windmill's database",
        "Its log names the reason once; windmill_exporter_collector_failures_total counts it by reason.",
    ),
    Alert(
        "WindmillCollectorFailing",
        "warning",
        "5m",
        f"{families.COLLECTOR_SUCCESS.name} == 0 unless on (job, instance) ({families.UP.name} == 0)",
        "The collector {{ $labels.collector }} of {{ $labels.instance }} fails",
        "The database answers, but this collector does not succeed: usually a missing table, column or privilege, "
        "which the log names.",
    ),
    Alert(
        "WindmillExporterReloadFailed",
        "warning",
        "5m",
        f"{families.RELOAD_SUCCESSFUL.name} == 0",
        "{{ $labels.instance }} refused its changed configuration",
        "It runs on with the configuration it had. The log and windmill-exporter check-config name each mistake.",
    ),
)

GROUPS = {"windmill-fairness": FAIRNESS, "windmill-queue": QUEUE, "windmill-exporter": SELF}


def alert_rules() -> Json:
    """The file of alert rules."""
    return {
        "groups": [{"name": name, "rules": [alert.to_json() for alert in alerts]} for name, alerts in GROUPS.items()]
    }
