"""A role that is granted exactly what some collectors need, for the tests of capabilities."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from exporter.database.capabilities import Requirement
from exporter.database.capability_check import CapabilityCheck
from exporter.database.database import Connection, Database
from exporter.errors import MissingCapability
from tests.database.targets import quoted

OPERATIONS = ("workspace_fairness.capped", "workspace_fairness.uncapped")
FAIRNESS = (
    Requirement("v2_job", select=("id", "workspace_id", "kind")),
    Requirement("v2_job_completed", select=("id", "completed_at", "duration_ms")),
    Requirement("audit", select=("operation", "resource"), operations=OPERATIONS),
)
WRITING = (
    Requirement(
        "audit_partitioned", select=("operation",), insert=("workspace_id", "operation"), operations=OPERATIONS
    ),
    Requirement("audit_id_seq", usage=True),
    Requirement("background_task_state", select=("name", "value"), insert=("name", "value"), update=("value",)),
)
QUEUE = (
    Requirement("v2_job_queue", select=("tag", "suspend_until")),
    Requirement("metrics", select=("id", "value"), delete=True),
)
SETTINGS = (Requirement("ops.fairness_settings", select=("name", "value")),)
ALL = {"fairness": FAIRNESS, "writing": WRITING, "queue": QUEUE, "settings": SETTINGS}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Scene:
    """A role that is granted exactly what the collectors need, and a check that runs as that role."""

    windmill: Connection
    role: str
    database: Database
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.check = CapabilityCheck(self.database, ALL, uniform=lambda: 0.0, monotonic=self.clock)

    async def run(self, sql: str) -> None:
        """Run as the owner, with ROLE replaced, then let the check look again."""
        await self.windmill.execute(sql.replace("ROLE", quoted(self.role)))
        self.check.invalidate()

    async def missing(self, collector: str) -> MissingCapability:
        with pytest.raises(MissingCapability) as caught:
            await self.check.require(collector)
        return caught.value

    async def works(self) -> list[str]:
        """The collectors that can work."""
        working = []
        for collector in ALL:
            try:
                await self.check.require(collector)
            except MissingCapability:
                continue
            working.append(collector)
        return working


GRANTS = """
CREATE SCHEMA ops;
CREATE VIEW ops.fairness_settings AS SELECT name, value FROM global_settings;
GRANT USAGE ON SCHEMA ops TO ROLE;
GRANT SELECT ON ops.fairness_settings TO ROLE;
GRANT SELECT (id, workspace_id, kind) ON v2_job TO ROLE;
GRANT SELECT (id, completed_at, duration_ms) ON v2_job_completed TO ROLE;
GRANT SELECT (operation, resource) ON audit TO ROLE;
GRANT SELECT, INSERT ON audit_partitioned TO ROLE;
GRANT USAGE ON SEQUENCE audit_id_seq TO ROLE;
GRANT SELECT, INSERT, UPDATE ON background_task_state TO ROLE;
GRANT SELECT ON v2_job_queue TO ROLE;
GRANT SELECT, DELETE ON metrics TO ROLE;
CREATE POLICY exporter_reads ON v2_job FOR SELECT TO ROLE USING (true);
CREATE POLICY exporter_reads ON audit FOR SELECT TO ROLE
    USING (operation IN ('workspace_fairness.capped', 'workspace_fairness.uncapped'));
CREATE POLICY exporter_reads ON audit_partitioned FOR SELECT TO ROLE
    USING (operation LIKE 'workspace\\_fairness.%');
CREATE POLICY exporter_writes ON audit_partitioned FOR INSERT TO ROLE
    WITH CHECK (operation = 'workspace_fairness.capped' OR operation = 'workspace_fairness.uncapped');
"""
