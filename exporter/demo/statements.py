"""What the simulated cluster writes, in the shape that Windmill leaves: one row a job in v2_job, queue and runtime."""

from __future__ import annotations

# ping stays NULL until a worker pulls the job.
ENQUEUE = """
WITH job AS (
    SELECT arrived.id, arrived.workspace_id, arrived.tag
      FROM unnest($1::uuid[], $2::text[], $3::text[]) AS arrived (id, workspace_id, tag)
),
described AS (
    INSERT INTO v2_job (id, workspace_id, tag, runnable_path)
    SELECT job.id, job.workspace_id, job.tag, 'f/demo/script'
      FROM job
),
queued AS (
    INSERT INTO v2_job_queue (id, workspace_id, tag, scheduled_for)
    SELECT job.id, job.workspace_id, job.tag, now()
      FROM job
)
INSERT INTO v2_job_runtime (id, ping)
SELECT job.id, NULL
  FROM job
"""

# The runtime rows go with the queue's (ON DELETE CASCADE).
COMPLETE = """
WITH ended AS (
    DELETE FROM v2_job_queue AS queue
     WHERE queue.id = ANY ($1::uuid[])
    RETURNING queue.id, queue.workspace_id, queue.started_at
)
INSERT INTO v2_job_completed (id, workspace_id, duration_ms, started_at, completed_at, status)
SELECT ended.id, ended.workspace_id, round(1000 * date_part('epoch', now() - ended.started_at)), ended.started_at,
       now(), 'success'
  FROM ended
"""

# A ping never waits for a row: completions delete the same rows in another order, and the two would deadlock.
PING_JOBS = """
WITH live AS (
    SELECT runtime.id
      FROM v2_job_runtime AS runtime
     WHERE runtime.id = ANY ($1::uuid[])
       FOR UPDATE SKIP LOCKED
)
UPDATE v2_job_runtime AS runtime
   SET ping = now()
  FROM live
 WHERE runtime.id = live.id
"""

REGISTER_WORKERS = """
INSERT INTO worker_ping (worker, worker_instance, custom_tags, worker_group)
SELECT worker.name, 'demo', $2::text[], 'default'
  FROM unnest($1::text[]) AS worker (name)
    ON CONFLICT (worker) DO UPDATE SET ping_at = now(), custom_tags = excluded.custom_tags
"""

PING_WORKERS = "UPDATE worker_ping SET ping_at = now() WHERE worker = ANY ($1::text[])"
