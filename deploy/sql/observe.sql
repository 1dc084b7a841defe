-- The role windmill_exporter_observe: what the default modes (fairness.mode shadow, queue.mode observe) read, and nothing
-- else. It can write nothing.
--
-- Run it in Windmill's database as a superuser, or as the owner of Windmill's tables if that role may create roles:
--     psql --set ON_ERROR_STOP=1 --file observe.sql "$DATABASE_URL"
-- Any other client will do, since this is plain SQL. It happens as a whole or not at all, and running it again changes
-- nothing. The role has no password yet and cannot log in with one; afterwards: \password windmill_exporter_observe
--
-- Replace, where yours differ: the schema public (one line below); the role's name (everywhere, in all files of this folder).

BEGIN;

-- CREATE POLICY locks its table against everybody for an instant. Where it cannot have the lock at once the script fails, to be
-- run again, instead of letting Windmill queue up behind it.
SET LOCAL lock_timeout = '2s';

-- The schema of Windmill's tables.
SET LOCAL search_path = public;

DO $$
BEGIN
    IF to_regrole('windmill_exporter_observe') IS NULL THEN
        CREATE ROLE windmill_exporter_observe LOGIN;
    END IF;
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO windmill_exporter_observe', current_database());
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO windmill_exporter_observe', current_schema());
END
$$;

-- Who waits, who runs, who serves. No arguments, results, scripts or user names: only these columns.
GRANT SELECT (id, workspace_id, running, started_at, suspend_until, tag, priority, scheduled_for)
    ON v2_job_queue TO windmill_exporter_observe;
GRANT SELECT (id, ping) ON v2_job_runtime TO windmill_exporter_observe;
GRANT SELECT (id, workspace_id, started_at, completed_at, duration_ms) ON v2_job_completed TO windmill_exporter_observe;
GRANT SELECT (id, kind) ON v2_job TO windmill_exporter_observe;
GRANT SELECT (worker, ping_at, custom_tags) ON worker_ping TO windmill_exporter_observe;

-- Stored samples, and the decision in force with the readings that replicas share.
GRANT SELECT (id, value, created_at) ON metrics TO windmill_exporter_observe;
GRANT SELECT (name, value, updated_at) ON background_task_state TO windmill_exporter_observe;

-- Since when a workspace is capped; the policies below narrow this to the two operations of fairness.
GRANT SELECT (workspace_id, id, "timestamp", operation, resource, parameters) ON audit TO windmill_exporter_observe;
GRANT SELECT (workspace_id, id, "timestamp", operation, resource, parameters)
    ON audit_partitioned TO windmill_exporter_observe;

-- global_settings holds secrets, so the role sees four of its rows through a view and nothing of the table. Name the view in the
-- exporter's configuration: fairness.settings_relation. A security barrier, so that no function in somebody's WHERE clause sees
-- the other rows.
CREATE OR REPLACE VIEW windmill_exporter_settings WITH (security_barrier = true) AS
SELECT name, value
  FROM global_settings
 WHERE name IN ('workspace_fairness_enabled', 'workspace_fairness_max_percent', 'workspace_fairness_duration_secs',
                'workspace_fairness_min_total_jobs');

-- The view belongs to the owner of the table, so that a migration of Windmill's may drop it. Windmill's default privileges grant
-- everything on new relations to its own roles; on this one they are taken back.
DO $$
DECLARE
    grantee text;
BEGIN
    EXECUTE format('ALTER VIEW windmill_exporter_settings OWNER TO %I',
                   (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'global_settings'::regclass));
    FOR grantee IN
        SELECT DISTINCT CASE WHEN entry.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(entry.grantee)) END
          FROM pg_class AS class, aclexplode(class.relacl) AS entry
         WHERE class.oid = 'windmill_exporter_settings'::regclass
           AND entry.grantee <> class.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON windmill_exporter_settings FROM %s', grantee);
    END LOOP;
END
$$;
GRANT SELECT (name, value) ON windmill_exporter_settings TO windmill_exporter_observe;

-- Windmill has row security on these tables: a role without a policy reads no rows and gets no error. v2_job has to be visible
-- as a whole, since every job counts; of it only id and kind were granted above.
DROP POLICY IF EXISTS windmill_exporter_observe_select ON v2_job;
CREATE POLICY windmill_exporter_observe_select ON v2_job FOR SELECT TO windmill_exporter_observe USING (true);
DROP POLICY IF EXISTS windmill_exporter_observe_select ON audit;
CREATE POLICY windmill_exporter_observe_select ON audit FOR SELECT TO windmill_exporter_observe
    USING (operation IN ('workspace_fairness.capped', 'workspace_fairness.uncapped'));
DROP POLICY IF EXISTS windmill_exporter_observe_select ON audit_partitioned;
CREATE POLICY windmill_exporter_observe_select ON audit_partitioned FOR SELECT TO windmill_exporter_observe
    USING (operation IN ('workspace_fairness.capped', 'workspace_fairness.uncapped'));

COMMIT;
