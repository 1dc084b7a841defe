-- Removes what observe.sql and enforce.sql made: policies, view, grants, both roles. Stop the exporter first, and run this like
-- the others. Running it again, or after only one of the two, does no harm.
--
-- Rows stay, since Windmill or your history may want them; docs/uninstall.md has the statements that remove them:
--     background_task_state  windmill_exporter_fairness, windmill_exporter_queue, windmill_exporter_retention: the exporter's own
--     background_task_state  workspace_fairness: the last decision, in a row that Windmill reads, too
--     metrics                queue_count_... and queue_delay_...: the samples; Windmill's servers write such rows, too
--     audit_partitioned      workspace_fairness.capped and workspace_fairness.uncapped: Windmill's audit log

BEGIN;

SET LOCAL lock_timeout = '2s';

-- The schema of Windmill's tables.
SET LOCAL search_path = public;

DROP POLICY IF EXISTS windmill_exporter_observe_select ON v2_job;
DROP POLICY IF EXISTS windmill_exporter_observe_select ON audit;
DROP POLICY IF EXISTS windmill_exporter_observe_select ON audit_partitioned;
DROP POLICY IF EXISTS windmill_exporter_enforce_insert ON audit_partitioned;
DROP VIEW IF EXISTS windmill_exporter_settings;

-- REVOKE ALL on a table takes the grants on its columns back as well. DROP OWNED would be shorter, but only a superuser or a
-- member of the role may use it. What Windmill has dropped in the meantime is passed over.
DO $$
DECLARE
    role_name text;
    relation text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['windmill_exporter_enforce', 'windmill_exporter_observe'] LOOP
        CONTINUE WHEN to_regrole(role_name) IS NULL;
        FOREACH relation IN ARRAY ARRAY['v2_job_queue', 'v2_job_runtime', 'v2_job_completed', 'v2_job', 'worker_ping',
                                        'metrics', 'background_task_state', 'audit', 'audit_partitioned'] LOOP
            CONTINUE WHEN to_regclass(relation) IS NULL;
            EXECUTE format('REVOKE ALL ON %I FROM %I', relation, role_name);
        END LOOP;
        IF to_regclass('audit_id_seq') IS NOT NULL THEN
            EXECUTE format('REVOKE ALL ON SEQUENCE audit_id_seq FROM %I', role_name);
        END IF;
        EXECUTE format('REVOKE ALL ON SCHEMA %I FROM %I', current_schema(), role_name);
        EXECUTE format('REVOKE ALL ON DATABASE %I FROM %I', current_database(), role_name);
        EXECUTE format('DROP ROLE %I', role_name);
    END LOOP;
END
$$;

COMMIT;
