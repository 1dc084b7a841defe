-- The role windmill_exporter_enforce: what the writing modes (fairness.mode enforce, queue.mode sample) need. Run observe.sql
-- first, and this one in the same way: this role is a member of the other, and adds the writes.
--
-- It can change rows of background_task_state and delete rows of metrics that are not the exporter's own: PostgreSQL could only
-- prevent that by row security on tables where Windmill has none. The exporter touches the rows workspace_fairness and
-- windmill_exporter_... of the first, and ids beginning with queue_count_ and queue_delay_ of the second.

BEGIN;

SET LOCAL lock_timeout = '2s';

-- The schema of Windmill's tables.
SET LOCAL search_path = public;

DO $$
BEGIN
    IF to_regrole('windmill_exporter_enforce') IS NULL THEN
        CREATE ROLE windmill_exporter_enforce LOGIN;
    END IF;
END
$$;
GRANT windmill_exporter_observe TO windmill_exporter_enforce;

-- queue.mode sample: store samples, and delete the expired ones. The DELETE finds its rows by ctid, a column that no grant on
-- named columns includes; the table has no others than the role may read anyway.
GRANT SELECT ON metrics TO windmill_exporter_enforce;
GRANT INSERT (id, value, created_at) ON metrics TO windmill_exporter_enforce;
GRANT DELETE ON metrics TO windmill_exporter_enforce;

-- Both writing modes: one replica a cycle claims its row here, and stores the decision and the shared readings.
GRANT INSERT (name, value, updated_at) ON background_task_state TO windmill_exporter_enforce;
GRANT UPDATE (value, updated_at) ON background_task_state TO windmill_exporter_enforce;

-- fairness.mode enforce: one audit row a transition, and by the policy no others.
GRANT INSERT (workspace_id, "timestamp", username, operation, action_kind, resource, parameters, email)
    ON audit_partitioned TO windmill_exporter_enforce;
GRANT USAGE ON SEQUENCE audit_id_seq TO windmill_exporter_enforce;
DROP POLICY IF EXISTS windmill_exporter_enforce_insert ON audit_partitioned;
CREATE POLICY windmill_exporter_enforce_insert ON audit_partitioned FOR INSERT TO windmill_exporter_enforce
    WITH CHECK (operation IN ('workspace_fairness.capped', 'workspace_fairness.uncapped'));

COMMIT;
