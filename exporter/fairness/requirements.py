"""What the fairness statements need of the database, by mode.

The audit tables are not among them: an audit row that cannot be written is owed, and never stops the refresh.
"""

from __future__ import annotations

from exporter.config import FairnessConfig
from exporter.database.capabilities import Requirement
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


def requirements(config: FairnessConfig) -> tuple[Requirement, ...]:
    """Everything that the collector `fairness` needs under `config`; nothing when it is off."""
    if config.mode is FairnessMode.OFF:
        return ()
    state = STATE_WRITTEN if config.mode is FairnessMode.ENFORCE else STATE_READ
    if len(pinned_values(config.settings)) == len(SETTING_NAMES):
        return (*OCCUPANCY, state)
    return (*OCCUPANCY, state, Requirement(config.settings_relation, select=("name", "value")))
