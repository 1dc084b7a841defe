"""The history dashboard: the stored series of 14 days and the cap transitions, through the JSON datasource."""

from __future__ import annotations

from dashboards.dashboard import JSON, Dashboard, datasource, query_variable
from dashboards.panel import BAD, GOOD, ODD, Json, JsonQuery, lines
from dashboards.table import Column, sent

TAGS = '{"tags": ${tag:json}}'
EVERY_TAG = "[]"
"""An empty list means every tag. It stands for All, so that a thousand tags do not travel in each request."""


def queue_history_dashboard() -> Dashboard:
    """The dashboard `windmill-queue-history`."""
    variable = query_variable(JSON, "tag", "Tag", {"query": "tags", "format": "string"}, "tags", every=EVERY_TAG)
    return Dashboard(
        uid="windmill-queue-history",
        title="Windmill queue history",
        description="Stored backlog and wait of each tag over up to 14 days, with the cap transitions.",
        plugin=JSON,
        variables=(variable,),
        panels=(
            lines(
                "Waiting jobs by tag",
                "Jobs due for over 3 seconds and not running, exactly as stored: no peak is averaged away.",
                "short",
                JsonQuery("queue_count", TAGS),
                width=24,
                height=9,
            ),
            lines(
                "Wait of the head by tag",
                "How long the job at the head of the tag had been due. A climb is one job that nobody takes, a drop "
                "is the moment when it was taken.",
                "s",
                JsonQuery("queue_delay", TAGS),
                width=24,
                height=9,
                symlog=True,
            ),
            sent(
                "Tags now",
                "Every tag with jobs waiting or running.",
                JsonQuery("queue_current", TAGS),
                {
                    "tag": Column("Tag"),
                    "count": Column("Waiting", "short"),
                    "delay": Column("Wait of the head", "s", base=GOOD, steps=((60, ODD), (300, BAD))),
                    "running": Column("Running", "short"),
                    "workers": Column("Workers", "short", base=BAD, steps=((1, GOOD),)),
                },
                sort_by="Wait of the head",
            ),
            sent(
                "Shares of the workspaces now",
                "Part of all worker time in the window that each workspace holds, and who is capped.",
                JsonQuery("fairness_shares"),
                {
                    "workspace": Column("Workspace"),
                    "share": Column("Share", "percentunit"),
                    "worker_seconds": Column("Worker time", "s"),
                    "capped": Column("Capped"),
                    "capped_since": Column("Capped since", "dateTimeFromNow"),
                },
                sort_by="Share",
            ),
        ),
        since="24h",
        refresh="1m",
        annotations=(_cap_transitions(),),
    )


def _cap_transitions() -> Json:
    return {
        "name": "Caps",
        "datasource": datasource(JSON),
        "enable": True,
        "hide": False,
        "iconColor": ODD,
        "target": JsonQuery("fairness_events").to_json("Anno"),
    }
