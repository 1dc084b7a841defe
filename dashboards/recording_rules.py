"""Recording rules: one series a workspace or tag and cluster, whatever the number of replicas."""

from __future__ import annotations

from dashboards.panel import Json
from dashboards.promql import RULES
from exporter.metrics import families
from exporter.metrics.values import Family

RECORDED: tuple[tuple[Family, str], ...] = (
    (families.SHARE, "workspace"),
    (families.CAPPED, "workspace"),
    (families.WORKSPACE_WAITING, "workspace"),
    (families.WORKSPACE_WAIT, "workspace"),
    (families.WAITING, "tag"),
    (families.DELAY, "tag"),
    (families.RUNNING, "tag"),
    (families.WORKERS, "tag"),
    (families.CAPPED_WORKSPACES, ""),
    (families.CAPPED_SHARE, ""),
    (families.EXPECTED_SHARE, ""),
    (families.TARGET_SHARE, ""),
    (families.ADMISSION, ""),
)


def recorded(family: Family, label: str = "") -> str:
    """The name of the recorded series of a family. Raises `ValueError` when it is not recorded."""
    if (family, label) not in RECORDED:
        raise ValueError(f"{family.name} is not recorded by {label or 'cluster'}")
    return f"{label or 'job'}:{family.name}:max"


def recording_rules() -> Json:
    """The file of recording rules."""
    rules = [
        {"record": recorded(family, label), "expr": RULES.gauge(family, *([label] if label else []))}
        for family, label in RECORDED
    ]
    return {"groups": [{"name": "windmill-recording", "rules": rules}]}
