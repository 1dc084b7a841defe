-- Worker time by workspace in the last $1 seconds, and the service times of the last 60 s, in one snapshot.
-- One row a workspace: workspace, worker_micros (bigint), service_jobs, service_ms (bigint), read_at (epoch seconds).
-- Exactly one row with a NULL workspace when nothing ran, so that read_at is always there.
--
-- Shape: each OFFSET 0 is a fence. It keeps the index range on completed_at and the look-ups by primary key whatever the
-- planner believes: without statistics, or under a generic plan, the unfenced form scans the whole history.
-- The running half starts from v2_job_runtime, so its joins follow live jobs and not a stuck backlog.
-- Workspaces are grouped in the "C" collation: a language's collation costs three times the rest.
WITH running AS (
    SELECT queued.workspace_id,
           -- The interval ends at the job's own last ping: a dead worker stops earning there. A start at infinity, or in the
           -- future, is brought to now() before any subtraction, which would overflow.
           least(now(), live.ping)
               - least(greatest(queued.started_at, now() - make_interval(secs => $1::float8)), now()) AS held
      FROM (SELECT runtime.id, runtime.ping
              FROM {schema}.v2_job_runtime AS runtime
             WHERE runtime.ping > now() - interval '60 seconds'
            OFFSET 0) AS live
     CROSS JOIN LATERAL (
            SELECT job.kind::text AS kind
              FROM {schema}.v2_job AS job
             WHERE job.id = live.id
            OFFSET 0) AS job
     CROSS JOIN LATERAL (
            SELECT queue.workspace_id, queue.started_at
              FROM {schema}.v2_job_queue AS queue
             WHERE queue.id = live.id
               AND queue.running
               -- GREATEST skips a NULL and would count the whole window.
               AND queue.started_at IS NOT NULL
               -- Suspended jobs are marked running but hold no worker.
               AND queue.suspend_until IS NULL
            OFFSET 0) AS queued
     WHERE job.kind <> ALL (ARRAY['flow', 'flowpreview', 'flownode', 'singlestepflow', 'singlescriptflow'])
),
completed AS (
    SELECT done.workspace_id,
           least(done.completed_at, now())
               - least(
                     greatest(
                         done.started_at,
                         -- A zombie that was failed by force counts its measured run time, not the time since its start.
                         done.completed_at
                             - make_interval(secs => least(greatest(done.duration_ms, 0), $1::float8 * 1000) / 1000.0),
                         now() - make_interval(secs => $1::float8)),
                     least(done.completed_at, now())) AS held,
           -- Jobs that never ran (0 ms) would drag the mean down, absurd durations up; both stay out of the sample.
           done.duration_ms BETWEEN 1 AND 10000000000
               AND done.completed_at > now() - interval '60 seconds'
               AND done.completed_at <= clock_timestamp() AS sampled,
           done.duration_ms
      FROM (SELECT completed.id, completed.workspace_id, completed.started_at, completed.completed_at,
                   completed.duration_ms
              FROM {schema}.v2_job_completed AS completed
             WHERE completed.completed_at > now() - make_interval(secs => greatest($1::float8, 60))
               AND completed.completed_at < 'infinity'
             ORDER BY completed.completed_at DESC
            OFFSET 0) AS done
     CROSS JOIN LATERAL (
            SELECT job.kind::text AS kind
              FROM {schema}.v2_job AS job
             WHERE job.id = done.id
            OFFSET 0) AS job
     WHERE job.kind <> ALL (ARRAY['flow', 'flowpreview', 'flownode', 'singlestepflow', 'singlescriptflow'])
),
usage AS (
    SELECT workspace_id COLLATE "C" AS workspace,
           -- Whole microseconds: equal tenants tie exactly at the threshold, and sums of floats miss it.
           sum(round(date_part('epoch', greatest(held, interval '0')) * 1000000)::bigint)::bigint AS worker_micros,
           count(*) FILTER (WHERE sampled) AS service_jobs,
           coalesce(sum(duration_ms) FILTER (WHERE sampled), 0)::bigint AS service_ms
      FROM (SELECT workspace_id, held, false AS sampled, 0::bigint AS duration_ms FROM running
             UNION ALL
            SELECT workspace_id, held, sampled, duration_ms FROM completed) AS jobs
     GROUP BY workspace_id COLLATE "C"
)
SELECT usage.workspace, usage.worker_micros, usage.service_jobs, usage.service_ms,
       date_part('epoch', now()) AS read_at
  FROM (SELECT) AS always
  LEFT JOIN usage ON true
