"""Replicas of the refresh in one test: how often they run, what the database is laid out with, what they stored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from exporter.config import FairnessConfig
from exporter.database.database import Connection
from exporter.fairness.gate import Cadence
from exporter.fairness.refresh import Refresher
from exporter.fairness.values import FairnessMode, FairnessSettings, RefreshOutcome
from tests.fairness.scene import add_completed, add_running

FAST = Cadence(capped=0.1, idle=0.2, claim_guard=0.1, reading=0.5, slack=0.005)
ENFORCE = FairnessConfig(mode=FairnessMode.ENFORCE)
SHADOW = FairnessConfig(mode=FairnessMode.SHADOW)
ENABLED = FairnessSettings(enabled=True)
MakeReplica = Callable[..., Refresher]


async def nothing_more() -> None:
    """The capability check of a database that offers everything."""


async def enable(windmill: Connection, **settings: object) -> None:
    for name, value in {"enabled": True, **settings}.items():
        await windmill.execute(
            "INSERT INTO global_settings (name, value) VALUES ($1, $2::text::jsonb) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            f"workspace_fairness_{name}",
            json.dumps(value),
        )


async def stored_payload(windmill: Connection) -> Any:
    text = await windmill.fetchval("SELECT value::text FROM background_task_state WHERE name = 'workspace_fairness'")
    return None if text is None else json.loads(text)


async def audit_rows(windmill: Connection) -> list[tuple[str, str]]:
    rows = await windmill.fetch("SELECT operation, resource FROM audit_partitioned ORDER BY id")
    return [(row["operation"].removeprefix("workspace_fairness."), row["resource"]) for row in rows]


async def next_tick(refresher: Refresher) -> RefreshOutcome:
    await asyncio.sleep(refresher.due_in())
    return await refresher.tick()


async def make_noisy(windmill: Connection) -> None:
    await add_running(windmill, "noisy", started_ago=60)
    await add_completed(windmill, "noisy", duration_ms=34_000, completed_ago=8)
    await add_completed(windmill, "quiet", duration_ms=1_000, completed_ago=2)
