"""The fairness dashboard: is anyone capped, who, since when, does it work, who waits, and are the numbers fresh."""

from __future__ import annotations

from dashboards.dashboard import PROMETHEUS, Dashboard, label_values
from dashboards.panel import BAD, GOOD, NEUTRAL, ODD, Panel, PromQuery, lines, stat, timeline
from dashboards.promql import PANELS
from dashboards.table import Column, joined
from exporter.fairness.values import FairnessState
from exporter.metrics import families

WORKSPACES = 'workspace=~"$workspace"'
CAP = 'name="max_percent"'
CAPPED = f"({PANELS.gauge(families.CAPPED, 'workspace')} == 1)"
WOULD_CAP = f"({PANELS.gauge(families.WOULD_CAP, 'workspace')} == 1)"
OTHERS_WAIT = f"{PANELS.gauge(families.WORKSPACE_WAIT, 'workspace')} unless on (workspace) {CAPPED}"

STATES = {
    FairnessState.OFF: NEUTRAL,
    FairnessState.DISABLED: NEUTRAL,
    FairnessState.IDLE: GOOD,
    FairnessState.FAIR: GOOD,
    FairnessState.CAPPING: ODD,
    FairnessState.STALE: BAD,
    FairnessState.FAILED: BAD,
}
WORKING = {"1": ("works", GOOD), "0": ("FAILS", BAD)}


def fairness_dashboard() -> Dashboard:
    """The dashboard `windmill-fairness`."""
    return Dashboard(
        uid="windmill-fairness",
        title="Windmill fairness",
        description="Which workspace holds the workers, who is capped, and who waits because of it.",
        plugin=PROMETHEUS,
        variables=(
            label_values("job", "Cluster", families.UP.name),
            label_values("workspace", "Workspace", PANELS.select(families.CAPPED), every=True),
        ),
        panels=(*_now(), *_who(), *_does_it_work(), *_who_waits(), *_fresh(), _shadow()),
        since="3h",
        refresh="30s",
    )


def _now() -> tuple[Panel, ...]:
    return (
        stat(
            "Capped workspaces now",
            "How many workspaces the decision in force caps.",
            "none",
            PromQuery(PANELS.gauge(families.CAPPED_WORKSPACES), instant=True),
            width=5,
            steps=((1, ODD),),
            texts={"0": ("nobody", GOOD)},
        ),
        stat(
            "State",
            "off: not run here. disabled: switched off in Windmill's settings. idle: too little load to judge. fair: "
            "nobody is above the cap. capping: somebody is. stale: nobody has renewed the decision for a minute, so "
            "everybody is admitted. failed: the last refresh failed.",
            "none",
            PromQuery(f"{PANELS.gauge(families.STATE, 'state')} == 1", legend="{{state}}", instant=True),
            width=5,
            text_mode="name",
            colors={state.value: color for state, color in STATES.items()},
        ),
        stat(
            "Admission of capped jobs",
            "Probability that one pull may take a job of a capped workspace. 100 % while nobody is capped.",
            "percentunit",
            PromQuery(PANELS.gauge(families.ADMISSION), instant=True),
            width=4,
        ),
        stat(
            "Longest wait of the others",
            "How long the longest waiting job of a workspace that is not capped has been due.",
            "s",
            PromQuery(PANELS.or_zero(f"max({OTHERS_WAIT})", families.OTHER_WAITING), instant=True),
            width=5,
            base=GOOD,
            steps=((60, ODD), (300, BAD)),
        ),
        stat(
            "Age of the decision",
            "How long ago the decision in force was made. It is renewed every 2 to 5 seconds; after a minute without "
            "renewal dispatchers admit everybody.",
            "s",
            PromQuery(f"clamp_min(time() - {PANELS.gauge(families.PAYLOAD_UPDATED)}, 0)", instant=True),
            width=5,
            base=GOOD,
            steps=((20, ODD), (60, BAD)),
        ),
    )


def _who() -> tuple[Panel, ...]:
    return (
        joined(
            "Who is capped, and since when",
            "Every capped workspace with what it holds now and what of it waits. Empty while nobody is capped.",
            "workspace",
            (
                Column("Workspace"),
                Column("Capped since", "dateTimeFromNow", f"1000 * {PANELS.gauge(families.CAPPED_SINCE, 'workspace')}"),
                Column(
                    "Share now",
                    "percentunit",
                    f"{PANELS.gauge(families.SHARE, 'workspace')} and on (workspace) {CAPPED}",
                ),
                Column(
                    "Waiting jobs",
                    "short",
                    f"{PANELS.gauge(families.WORKSPACE_WAITING, 'workspace')} and on (workspace) {CAPPED}",
                ),
                Column(
                    "Longest wait",
                    "s",
                    f"{PANELS.gauge(families.WORKSPACE_WAIT, 'workspace')} and on (workspace) {CAPPED}",
                ),
            ),
            sort_by="Share now",
        ),
        timeline(
            "Who was capped when",
            "A band for each workspace while it was capped, whoever wrote the decision.",
            PromQuery(f"{PANELS.gauge(families.CAPPED, 'workspace', where=WORKSPACES)} == 1", legend="{{workspace}}"),
            texts={"1": ("capped", ODD)},
        ),
    )


def _does_it_work() -> tuple[Panel, ...]:
    return (
        lines(
            "Share of the workers by workspace",
            "Part of all worker time in the window that each workspace held. Who reaches the cap is capped.",
            "percentunit",
            PromQuery(PANELS.gauge(families.SHARE, "workspace", where=WORKSPACES), legend="{{workspace}}"),
            PromQuery(f"{PANELS.gauge(families.SETTING, where=CAP)} / 100", legend="cap"),
            top=1,
            dashed=("cap",),
        ),
        lines(
            "Capped workspaces together: predicted and actual share",
            "The share that the admission probability should give them, and what they really hold. Actual above "
            "predicted is fine while nobody else waits: then no worker idles for the sake of the cap.",
            "percentunit",
            PromQuery(PANELS.gauge(families.CAPPED_SHARE), legend="actual"),
            PromQuery(PANELS.gauge(families.EXPECTED_SHARE), legend="predicted"),
            PromQuery(PANELS.gauge(families.TARGET_SHARE), legend="target"),
            top=1,
            dashed=("target",),
        ),
        lines(
            "Admission probability",
            "Chance of one pull to take a job of a capped workspace: the lower, the longer their jobs run compared "
            "with the others'. 100 % while nobody is capped.",
            "percentunit",
            PromQuery(PANELS.gauge(families.ADMISSION), legend="in force"),
            PromQuery(PANELS.gauge(families.WOULD_ADMISSION), legend="of the shadow"),
            top=1,
        ),
        lines(
            "Mean job duration: capped and others",
            "D_c and D_u of the admission formula: mean run time of jobs that completed within the last minute. Absent "
            "without completions.",
            "s",
            PromQuery(PANELS.gauge(families.MEAN_SERVICE, "bucket"), legend="{{bucket}}"),
            symlog=True,
        ),
    )


def _who_waits() -> tuple[Panel, ...]:
    return (
        lines(
            "Wait of the workspaces that are not capped",
            "How long the longest waiting job of each has been due. This is what the cap is for: it should stay short.",
            "s",
            PromQuery(OTHERS_WAIT, legend="{{workspace}}"),
            symlog=True,
        ),
        lines(
            "Transitions",
            "Workspaces capped and uncapped by decisions that these replicas wrote. Many of both say that somebody "
            "hovers around the cap.",
            "short",
            PromQuery(
                PANELS.increase(families.TRANSITIONS, "transition", window="$__rate_interval"), legend="{{transition}}"
            ),
            bars=True,
        ),
    )


def _fresh() -> tuple[Panel, ...]:
    up = PANELS.select(families.UP)
    return (
        stat(
            "Collectors",
            "Whether the last run of each collector succeeded on every replica, and what it read is fresh.",
            "none",
            PromQuery(PANELS.worst(families.COLLECTOR_SUCCESS, "collector"), legend="{{collector}}", instant=True),
            width=8,
            texts=WORKING,
            text_mode="value_and_name",
        ),
        stat(
            "Replicas without the database",
            "How many replicas cannot reach the database now.",
            "none",
            PromQuery(f"count({up} == 0) or 0 * count({up})", instant=True),
            width=4,
            base=GOOD,
            steps=((1, BAD),),
        ),
        lines(
            "Refreshes by outcome",
            "Cycles of all replicas per second. won: this replica made the decision. lost: another one did. error, "
            "timeout: look at the log.",
            "ops",
            PromQuery(PANELS.rate(families.REFRESHES, "result", window="$__rate_interval"), legend="{{result}}"),
        ),
    )


def _shadow() -> Panel:
    return joined(
        "Shadow: who would be capped",
        "What this exporter would decide, in shadow mode or beside another writer. Empty in enforce mode.",
        "workspace",
        (
            Column("Workspace"),
            Column(
                "Share now",
                "percentunit",
                f"{PANELS.gauge(families.SHARE, 'workspace')} and on (workspace) {WOULD_CAP}",
            ),
            Column("Would be capped", "none", WOULD_CAP),
        ),
        sort_by="Share now",
        width=12,
    )
