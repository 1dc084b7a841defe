"""Rows for tests and benchmarks whose subject is a big database: history over 30 days, live, queued and stuck jobs.

Times hang on `now()`, and whoever measures has about ten seconds before the recent completions leave their windows.
"""

from __future__ import annotations

from exporter.database.database import Connection

HISTORY_DAYS = 30
RECENT_SECONDS = 70
RECENT_ROWS = 7_000
WORKSPACES = 40

TABLES = ("v2_job", "v2_job_completed", "v2_job_queue", "v2_job_runtime")

# Ids begin with the time, as Windmill's do (ULID), so that neighbours in time are neighbours in the primary key.
# Every tenth job is a flow; durations run from 50 ms to 20 s.
COMPLETED = f"""
WITH placed AS (
    SELECT n, now() - interval '1 second' * ($2::float8 + n * $3::float8) AS completed_at,
           50 + (n::bigint * 7919) % 19950 AS duration_ms
      FROM generate_series(1, $1::int) AS n
),
made AS MATERIALIZED (
    SELECT (lpad(to_hex((extract(epoch FROM completed_at) * 1000)::bigint), 12, '0')
            || left(md5($4::text || n), 20))::uuid AS id,
           'tenant-' || (n::bigint * n) % {WORKSPACES} AS workspace_id, completed_at, duration_ms, n
      FROM placed
     ORDER BY n DESC
),
job AS (
    INSERT INTO v2_job (id, workspace_id, tag, kind, runnable_path)
    SELECT id, workspace_id, 'tag-' || n % 7,
           (CASE WHEN n % 10 = 0 THEN 'flow' ELSE 'script' END)::job_kind, 'f/bench/' || n % 100
      FROM made
)
INSERT INTO v2_job_completed (id, workspace_id, duration_ms, started_at, completed_at, status)
SELECT id, workspace_id, duration_ms, completed_at - interval '1 millisecond' * duration_ms, completed_at, 'success'
  FROM made
"""

# $2: running; $3: how long ago it was started and last pinged, NULL for jobs that wait.
QUEUED = f"""
WITH made AS (
    SELECT gen_random_uuid() AS id, 'tenant-' || n % {WORKSPACES} AS workspace_id, 'tag-' || n % 7 AS tag,
           (CASE WHEN n % 10 = 0 THEN 'flow' ELSE 'script' END)::job_kind AS kind,
           now() - interval '1 second' * (coalesce($3::float8, 0) + n % 30) AS begun
      FROM generate_series(1, $1::int) AS n
),
job AS (
    INSERT INTO v2_job (id, workspace_id, tag, kind) SELECT id, workspace_id, tag, kind FROM made
),
queue AS (
    INSERT INTO v2_job_queue (id, workspace_id, tag, scheduled_for, created_at, started_at, running)
    SELECT id, workspace_id, tag, begun, begun, CASE WHEN $2 THEN begun END, $2 FROM made
)
INSERT INTO v2_job_runtime (id, ping)
SELECT id, CASE WHEN $2 THEN now() - interval '1 second' * $3::float8 END FROM made
"""

SECONDARY_INDEXES = """
SELECT pg_get_indexdef(i.indexrelid) AS definition, i.indexrelid::regclass::text AS name
  FROM pg_index i
 WHERE i.indrelid = ANY ($1::text[]::regclass[])
   AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
"""


async def lay_out_history(connection: Connection, *, completed: int, live: int, queued: int, stuck: int) -> None:
    """Fill an empty database of Windmill's tables: `completed` jobs over 30 days and three kinds of queued rows.

    The last 70 s hold the same traffic (100 completions a second) whatever `completed` is, so sizes can be compared.
    `live` jobs run and pinged a second ago, `queued` ones wait with a NULL ping, `stuck` ones are marked running but
    pinged a day ago. Automatic vacuum is switched off on the tables: statistics are there when the caller makes them.
    """
    for table in TABLES:
        await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    recent = min(completed, RECENT_ROWS)
    history = completed - recent
    indexes = await connection.fetch(SECONDARY_INDEXES, ["v2_job", "v2_job_completed"])
    await connection.execute("".join(f"DROP INDEX {index['name']};" for index in indexes))
    if history:
        spacing = (HISTORY_DAYS * 86_400 - RECENT_SECONDS) / history
        await connection.execute(COMPLETED, history, float(RECENT_SECONDS), spacing, "history")
    for index in indexes:
        await connection.execute(index["definition"])
    await connection.execute(QUEUED, queued, False, None)
    await connection.execute(QUEUED, stuck, True, 86_400.0)
    await lay_out_present(connection, recent=recent, live=live)


async def lay_out_present(connection: Connection, *, recent: int, live: int) -> None:
    """Only what `lay_out_history` puts into the last 70 s: `recent` completions and `live` running jobs."""
    if recent:
        await connection.execute(COMPLETED, recent, 0.0, RECENT_SECONDS / recent, f"recent {await _moment(connection)}")
    await connection.execute(QUEUED, live, True, 1.0)


async def _moment(connection: Connection) -> str:
    return str(await connection.fetchval("SELECT clock_timestamp()::text"))
