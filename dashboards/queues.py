"""The queue dashboard: which tags wait, for how long, and who serves them."""

from __future__ import annotations

from dashboards.dashboard import PROMETHEUS, Dashboard, label_values
from dashboards.panel import BAD, GOOD, ODD, Panel, PromQuery, lines, stat
from dashboards.promql import PANELS
from dashboards.table import Column, joined
from exporter.metrics import families

TAGS = 'tag=~"$tag"'
HISTORY = "/d/windmill-queue-history?var-tag=${__value.raw:percentencode}"
WAITING = PANELS.gauge(families.WAITING, "tag")
UNSERVED = f"({WAITING} > 0) and on (tag) ({PANELS.gauge(families.WORKERS, 'tag')} == 0)"
WAIT_STEPS = ((60, ODD), (300, BAD))


def queues_dashboard() -> Dashboard:
    """The dashboard `windmill-queues`."""
    return Dashboard(
        uid="windmill-queues",
        title="Windmill queues",
        description="Which tags have jobs waiting, for how long, and whether anybody serves them.",
        plugin=PROMETHEUS,
        variables=(
            label_values("job", "Cluster", families.UP.name),
            label_values("tag", "Tag", PANELS.select(families.WAITING), every=True),
        ),
        panels=(*_now(), *_tables(), *_over_time(), _samples()),
        since="3h",
        refresh="30s",
    )


def _now() -> tuple[Panel, ...]:
    backlog = PANELS.or_zero(f"sum({WAITING})", families.OTHER_WAITING)
    running = f"sum({PANELS.gauge(families.RUNNING, 'tag')})"
    last_success = PANELS.best(families.COLLECTOR_LAST_SUCCESS, where='collector="queue"')
    return (
        stat(
            "Waiting jobs",
            "Jobs of all tags that are due for over 3 seconds and not running.",
            "short",
            PromQuery(f"({backlog}) + {PANELS.gauge(families.OTHER_WAITING)}", instant=True),
            width=5,
        ),
        stat(
            "Longest wait",
            "How long the job at the head of the slowest tag has been due.",
            "s",
            PromQuery(PANELS.or_zero(PANELS.gauge(families.DELAY), families.OTHER_WAITING), instant=True),
            width=5,
            base=GOOD,
            steps=WAIT_STEPS,
        ),
        stat(
            "Tags without a worker",
            "Tags with jobs waiting and no live worker. A group that is just scaling up from zero is among them.",
            "none",
            PromQuery(PANELS.or_zero(f"count({UNSERVED})", families.OTHER_WAITING), instant=True),
            width=5,
            base=GOOD,
            steps=((1, BAD),),
        ),
        stat(
            "Running jobs",
            "Jobs of all tags that are running.",
            "short",
            PromQuery(PANELS.or_zero(running, families.OTHER_WAITING), instant=True),
            width=4,
        ),
        stat(
            "Age of the reading",
            "How long ago a replica last read the queue. Without a fresh reading the other panels are empty.",
            "s",
            PromQuery(f"clamp_min(time() - {last_success}, 0)", instant=True),
            width=5,
            base=GOOD,
            steps=((30, ODD), (60, BAD)),
        ),
    )


def _tables() -> tuple[Panel, ...]:
    return (
        joined(
            "Tags now: who waits, how long, who serves them",
            "Every tag with jobs waiting or running, or drained within the last 15 minutes. The link of a tag leads "
            "to its history.",
            "tag",
            (
                Column("Tag", link=HISTORY),
                Column("Waiting", "short", PANELS.gauge(families.WAITING, "tag", where=TAGS)),
                Column("Wait of the head", "s", PANELS.gauge(families.DELAY, "tag", where=TAGS), GOOD, WAIT_STEPS),
                Column("Running", "short", PANELS.gauge(families.RUNNING, "tag", where=TAGS)),
                Column("Workers", "short", PANELS.gauge(families.WORKERS, "tag", where=TAGS), BAD, ((1, GOOD),)),
            ),
            sort_by="Wait of the head",
            width=14,
        ),
        joined(
            "Tags without a worker now",
            "Jobs wait and no live worker lists the tag. In the first minutes this looks the same when a group scales "
            "up from zero: the alert waits for 10 minutes.",
            "tag",
            (
                Column("Tag", link=HISTORY),
                Column("Waiting", "short", UNSERVED),
                Column(
                    "Head due since",
                    "dateTimeFromNow",
                    f"1000 * {PANELS.gauge(families.HEAD_SINCE, 'tag')} and on (tag) ({UNSERVED})",
                ),
            ),
            sort_by="Waiting",
            width=10,
        ),
    )


def _over_time() -> tuple[Panel, ...]:
    return (
        lines(
            "Waiting jobs by tag",
            "Jobs that are due for over 3 seconds and not running.",
            "short",
            PromQuery(PANELS.gauge(families.WAITING, "tag", where=TAGS), legend="{{tag}}"),
        ),
        lines(
            "Wait of the head by tag",
            "How long the job that the next pull of the tag would take has been due.",
            "s",
            PromQuery(PANELS.gauge(families.DELAY, "tag", where=TAGS), legend="{{tag}}"),
            symlog=True,
        ),
        lines(
            "Backlog against running",
            "All chosen tags together. Waiting that grows while running stays level says that workers are the limit.",
            "short",
            PromQuery(f"sum({PANELS.gauge(families.WAITING, 'tag', where=TAGS)})", legend="waiting"),
            PromQuery(f"sum({PANELS.gauge(families.RUNNING, 'tag', where=TAGS)})", legend="running"),
        ),
        lines(
            "Workers by tag",
            "Live workers that list the tag. One worker may list many tags, so the lines do not add up.",
            "short",
            PromQuery(PANELS.gauge(families.WORKERS, "tag", where=TAGS), legend="{{tag}}"),
        ),
    )


def _samples() -> Panel:
    return lines(
        "Samples by outcome",
        "Series of the queue readings per second, in sample mode. unchanged: nothing to store. skipped: the name of "
        "the tag is too long for the table, or there are more tags than the limit.",
        "ops",
        PromQuery(PANELS.rate(families.SAMPLES, "result", window="$__rate_interval"), legend="{{result}}"),
        width=24,
        height=6,
    )
