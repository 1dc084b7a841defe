"""Database roles with exactly the rights that the modes need, and no others (windmill-db: what the roles need)."""

from __future__ import annotations

OBSERVE = """
CREATE ROLE {role} LOGIN;
GRANT SELECT (id, workspace_id, running, started_at, suspend_until, tag, priority, scheduled_for)
    ON v2_job_queue TO {role};
GRANT SELECT (id, ping) ON v2_job_runtime TO {role};
GRANT SELECT (id, workspace_id, started_at, completed_at, duration_ms) ON v2_job_completed TO {role};
GRANT SELECT (worker, ping_at, custom_tags) ON worker_ping TO {role};
GRANT SELECT (id, workspace_id, kind, tag) ON v2_job TO {role};
CREATE POLICY {role}_reads ON v2_job FOR SELECT TO {role} USING (true);
GRANT SELECT ON metrics TO {role};
GRANT SELECT (name, value, updated_at) ON background_task_state TO {role};
GRANT SELECT ON audit, audit_partitioned TO {role};
CREATE POLICY {role}_reads ON audit FOR SELECT TO {role}
    USING (operation IN ('workspace_fairness.capped', 'workspace_fairness.uncapped'));
CREATE POLICY {role}_reads ON audit_partitioned FOR SELECT TO {role}
    USING (operation IN ('workspace_fairness.capped', 'workspace_fairness.uncapped'));
CREATE VIEW {role}_settings AS SELECT name, value FROM global_settings WHERE name LIKE 'workspace\\_fairness\\_%';
GRANT SELECT ON {role}_settings TO {role};
"""

ENFORCE = """
GRANT INSERT (id, value, created_at), DELETE ON metrics TO {role};
GRANT INSERT (name, value, updated_at), UPDATE (value, updated_at) ON background_task_state TO {role};
GRANT INSERT ON audit_partitioned TO {role};
GRANT USAGE ON SEQUENCE audit_id_seq TO {role};
CREATE POLICY {role}_writes ON audit_partitioned FOR INSERT TO {role}
    WITH CHECK (operation IN ('workspace_fairness.capped', 'workspace_fairness.uncapped'));
"""

DROP = "DROP OWNED BY {role} CASCADE; DROP ROLE {role}"
