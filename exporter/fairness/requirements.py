"""What the fairness statements need of the database, by mode.

The audit tables stand apart: an audit row that cannot be written is owed, and never stops the refresh.
"""

from __future__ import annotations

from exporter.config import FairnessConfig
from exporter.database.capabilities import Requirement
from exporter.database.statement import split_relation
from exporter.fairness.audit import CAPPED, UNCAPPED
from exporter.fairness.settings import SETTING_NAMES, pinned_values
from exporter.fairness.values import FairnessMode

OCCUPANCY = (
    Requirement("v2_job_runtime", select=("id", "ping")),
    Requirement("v2_job_queue", select=("id", "workspace_id", "running", "started_at", "suspend_until")),
    Requirement("v2_job_completed", select=("id", "workspace_id", "started_at", "completed_at", "duration_ms")),
    Requirement("v2_job", select=("id", "kind")),
)
STATE_READ = Requirement("background_task_state", select=("name", "value", "updated_at"))
STATE_WRITTEN = Requirement(
    "background_task_state",
    select=("name", "value", "updated_at"),
    insert=("name", "value", "updated_at"),
    update=("value", "updated_at"),
)
AUDIT_COLUMNS = ("workspace_id", "id", "timestamp", "operation", "resource", "parameters")
AUDIT_READ = (
    Requirement("audit", select=AUDIT_COLUMNS, operations=(CAPPED, UNCAPPED)),
    Requirement("audit_partitioned", select=AUDIT_COLUMNS, operations=(CAPPED, UNCAPPED)),
)
AUDIT_WRITTEN = (
    AUDIT_READ[0],
    Requirement(
        "audit_partitioned",
        select=AUDIT_COLUMNS,
        insert=(
            "workspace_id",
            "timestamp",
            "username",
            "operation",
            "action_kind",
            "resource",
            "parameters",
            "email",
        ),
        operations=(CAPPED, UNCAPPED),
    ),
    Requirement("audit_id_seq", usage=True),
)
SECRETS = "it also holds secrets: let deploy/sql/observe.sql make a view, and name that in fairness.settings_relation"


def requirements(config: FairnessConfig) -> tuple[Requirement, ...]:
    """Everything that the collector `fairness` needs under `config`; nothing when it is off."""
    if config.mode is FairnessMode.OFF:
        return ()
    state = STATE_WRITTEN if config.mode is FairnessMode.ENFORCE else STATE_READ
    if len(pinned_values(config.settings)) == len(SETTING_NAMES):
        return (*OCCUPANCY, state)
    _, relation = split_relation(config.settings_relation, "")
    advice = SECRETS if relation == "global_settings" else ""
    return (*OCCUPANCY, state, Requirement(config.settings_relation, select=("name", "value"), advice=advice))


def audit_requirements(config: FairnessConfig) -> tuple[Requirement, ...]:
    """What the transitions in Windmill's audit log need under `config`; nothing when the collector is off."""
    by_mode = {FairnessMode.OFF: (), FairnessMode.ENFORCE: AUDIT_WRITTEN}
    return by_mode.get(config.mode, AUDIT_READ)
