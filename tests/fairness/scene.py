"""Lays out jobs in Windmill's tables, with ages relative to the database's clock."""

from __future__ import annotations

from exporter.database.database import Connection


async def add_running(
    connection: Connection,
    workspace: str,
    *,
    started_ago: float | None = 5.0,
    ping_ago: float | None = 0.0,
    kind: str = "script",
    running: bool = True,
    suspended: bool = False,
    tag: str = "deno",
) -> None:
    """One job in the queue with a worker on it, unless said otherwise. Ages in seconds; None is NULL."""
    await connection.execute(
        """
        WITH job AS (
            INSERT INTO v2_job (id, workspace_id, kind, tag)
            VALUES (gen_random_uuid(), $1, $2::text::job_kind, $7) RETURNING id
        ), queued AS (
            INSERT INTO v2_job_queue (id, workspace_id, scheduled_for, running, started_at, suspend_until, tag)
            SELECT id, $1, now() - interval '1 hour', $5, clock_timestamp() - make_interval(secs => $3::float8),
                   CASE WHEN $6 THEN now() + interval '1 day' END, $7 FROM job RETURNING id
        )
        INSERT INTO v2_job_runtime (id, ping)
        SELECT id, clock_timestamp() - make_interval(secs => $4::float8) FROM queued
        """,
        workspace,
        kind,
        started_ago,
        ping_ago,
        running,
        suspended,
        tag,
    )


async def add_completed(
    connection: Connection,
    workspace: str,
    *,
    duration_ms: int,
    completed_ago: float = 1.0,
    started_ago: float | None = None,
    count: int = 1,
    kind: str = "script",
    has_start: bool = True,
) -> None:
    """`count` completed jobs; the start is the completion less the duration unless `started_ago` says otherwise."""
    await connection.execute(
        """
        WITH job AS (
            INSERT INTO v2_job (id, workspace_id, kind)
            SELECT gen_random_uuid(), $1, $2::text::job_kind FROM generate_series(1, $6) RETURNING id
        )
        INSERT INTO v2_job_completed (id, workspace_id, duration_ms, started_at, completed_at, status)
        SELECT id, $1, $3::bigint,
               CASE WHEN NOT $7 THEN NULL
                    ELSE now() - make_interval(
                        secs => coalesce($5::float8, $4::float8 + least($3::bigint, 10000000) / 1000.0))
               END,
               now() - make_interval(secs => $4::float8), 'success'
          FROM job
        """,
        workspace,
        kind,
        duration_ms,
        completed_ago,
        started_ago,
        count,
        has_start,
    )
