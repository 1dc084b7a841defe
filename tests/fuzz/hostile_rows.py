"""Rows as nobody sane would write them, in every table that the product reads; whatever a column takes is possible."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import strategies as st

from exporter.database.database import Connection
from tests.queue.scene import HOSTILE_NAMES
from tests.strategies import json_values

TABLES = (
    "v2_job_queue, v2_job_runtime, v2_job, v2_job_completed, metrics, background_task_state, global_settings, "
    "worker_ping, audit, audit_partitioned"
)
STATE_ROWS = ("workspace_fairness", "windmill_exporter_fairness", "windmill_exporter_queue")
SETTINGS = tuple(f"workspace_fairness_{name}" for name in ("enabled", "max_percent", "duration_secs", "min_total_jobs"))
OPERATIONS = ("workspace_fairness.capped", "workspace_fairness.uncapped")
# jsonb holds numbers that no double does.
ABSURD_JSON = (
    "1e400",
    "-1e400",
    '{"since": 1e400}',
    '{"since": "x"}',
    '{"since": null}',
    "[[[[]]]]",
    '"NaN"',
    "9" * 400,
    '{"overloaded": ["noisy", "noisy", 1, null], "admission_ppm": 1e400}',
    '{"overloaded": {"a": 1}, "admission_ppm": -1}',
    '{"max_percent": 1e400, "window_secs": {"a": [1e400]}}',
)
# As SQL: what is recent, what is long ago or far ahead, and what is no moment at all.
MOMENTS = (
    *(f"now() - interval '{age}'" for age in ("1 s", "7 s", "2 min", "3 h", "20 days", "-1 h")),
    *(
        f"timestamptz '{moment}'"
        for moment in ("infinity", "-infinity", "4713-01-01 BC", "0001-01-01 BC", "9999-12-31", "294276-12-31 23:59:59")
    ),
)

# What ends a text early in one of our formats.
BREAKING = (
    "</bdi></td>",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&lt;&#0;&",
    "]]>-->",
    'a"} 1\nb{c="d',
    '"}],"NaN":NaN,"a":[{"b":"',
    "\\ud800",
)
names = st.one_of(
    st.sampled_from([*(name[:50] for name in HOSTILE_NAMES), *BREAKING]),
    # What PostgreSQL stores in a text.
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=50),
)
documents = st.sampled_from(ABSURD_JSON) | json_values.map(json.dumps).filter(lambda text: "\\u0000" not in text)
moments = st.sampled_from(MOMENTS)
durations = st.sampled_from((0, -1, 1, 30_000, 2**63 - 1, -(2**63))) | st.integers(0, 10**6)


@dataclass(frozen=True)
class Rows:
    """What a database holds: names of tags and workspaces, moments as SQL, JSON texts."""

    jobs: list[tuple[str, str, bool, str]]
    completed: list[tuple[str, int, str]]
    samples: list[tuple[str, str, str, str]]
    settings: dict[str, str]
    states: dict[str, tuple[str, str]]
    audit: list[tuple[str, str, str, str]]
    served: list[str]


rows = st.builds(
    Rows,
    jobs=st.lists(st.tuples(names, names, st.booleans(), moments), max_size=8),
    completed=st.lists(st.tuples(names, durations, moments), max_size=5),
    samples=st.lists(st.tuples(st.sampled_from(("count", "delay", "")), names, documents, moments), max_size=8),
    settings=st.dictionaries(st.sampled_from(SETTINGS), documents | st.just("true") | st.just("1")),
    states=st.dictionaries(st.sampled_from(STATE_ROWS), st.tuples(documents, moments)),
    audit=st.lists(st.tuples(st.sampled_from(OPERATIONS), names, documents, moments), max_size=5),
    served=st.lists(names, max_size=4),
)


async def replace_rows(windmill: Connection, content: Rows) -> None:
    """Empty every table, and fill it with `content`."""
    await windmill.execute(f"TRUNCATE {TABLES} CASCADE")
    for tag, workspace, running, at in content.jobs:
        await windmill.execute(
            f"""
            WITH job AS (INSERT INTO v2_job (id, workspace_id, tag) VALUES (gen_random_uuid(), $2, $1) RETURNING id),
            queued AS (
                INSERT INTO v2_job_queue (id, workspace_id, tag, running, created_at, scheduled_for, started_at)
                SELECT id, $2, $1, $3, {at}, {at}, {at} FROM job RETURNING id
            )
            INSERT INTO v2_job_runtime (id, ping) SELECT id, {at} FROM queued
            """,
            tag,
            workspace,
            running,
        )
    for workspace, duration_ms, at in content.completed:
        await windmill.execute(
            f"""
            WITH job AS (INSERT INTO v2_job (id, workspace_id) VALUES (gen_random_uuid(), $1) RETURNING id)
            INSERT INTO v2_job_completed (id, workspace_id, duration_ms, started_at, completed_at, status)
            SELECT id, $1, $2, {at}, {at}, 'success' FROM job
            """,
            workspace,
            duration_ms,
        )
    for kind, tag, value, at in content.samples:
        await windmill.execute(
            f"INSERT INTO metrics (id, value, created_at) VALUES ($1, $2::text::jsonb, {at})",
            f"queue_{kind}_{tag}",
            value,
        )
    await _replace_state(windmill, content)


async def _replace_state(windmill: Connection, content: Rows) -> None:
    for name, value in content.settings.items():
        await windmill.execute("INSERT INTO global_settings (name, value) VALUES ($1, $2::text::jsonb)", name, value)
    for name, (value, at) in content.states.items():
        await windmill.execute(
            f"INSERT INTO background_task_state (name, value, updated_at) VALUES ($1, $2::text::jsonb, {at})",
            name,
            value,
        )
    for operation, workspace, parameters, at in content.audit:
        for table, moment in (("audit", at), ("audit_partitioned", "now()")):
            await windmill.execute(
                f"""
                INSERT INTO {table} ("timestamp", username, operation, action_kind, workspace_id, resource, parameters)
                VALUES ({moment}, 'system', $1, 'update', 'admins', $2, $3::text::jsonb)
                """,
                operation,
                workspace,
                parameters,
            )
    await windmill.execute(
        "INSERT INTO worker_ping (worker, worker_instance, custom_tags) VALUES ($1, 'host', $2)", "w", content.served
    )
