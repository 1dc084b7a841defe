-- The latest 200 caps and the latest 200 uncaps, newest first, out of both audit tables: rows go to audit_partitioned, the old
-- table is only read.
--
-- Shape: one look-up for each table and operation, in the order of ix_audit_..._workspace_operation (workspace_id, operation,
-- id DESC): 200 rows each, whatever the size of the audit log. One condition over both operations, or an order by time, would
-- read all of them.
SELECT date_part('epoch', latest."timestamp") AS at, latest.operation, latest.resource AS workspace,
       latest.parameters::text AS parameters
  FROM (SELECT found.id, found."timestamp", found.operation, found.resource, found.parameters,
               row_number() OVER (PARTITION BY found.operation ORDER BY found."timestamp" DESC, found.id DESC) AS place
          FROM (
        (SELECT audit.id, audit."timestamp", audit.operation, audit.resource, audit.parameters
           FROM {schema}.audit_partitioned AS audit
          WHERE audit.workspace_id = 'admins'
            AND audit.operation = 'workspace_fairness.capped'
          ORDER BY audit.id DESC
          LIMIT 200)
         UNION ALL
        (SELECT audit.id, audit."timestamp", audit.operation, audit.resource, audit.parameters
           FROM {schema}.audit_partitioned AS audit
          WHERE audit.workspace_id = 'admins'
            AND audit.operation = 'workspace_fairness.uncapped'
          ORDER BY audit.id DESC
          LIMIT 200)
         UNION ALL
        (SELECT audit.id, audit."timestamp", audit.operation, audit.resource, audit.parameters
           FROM {schema}.audit AS audit
          WHERE audit.workspace_id = 'admins'
            AND audit.operation = 'workspace_fairness.capped'
          ORDER BY audit.id DESC
          LIMIT 200)
         UNION ALL
        (SELECT audit.id, audit."timestamp", audit.operation, audit.resource, audit.parameters
           FROM {schema}.audit AS audit
          WHERE audit.workspace_id = 'admins'
            AND audit.operation = 'workspace_fairness.uncapped'
          ORDER BY audit.id DESC
          LIMIT 200)
               ) AS found
         WHERE found.resource IS NOT NULL
           AND isfinite(found."timestamp")) AS latest
 WHERE latest.place <= 200
 ORDER BY latest."timestamp" DESC, latest.id DESC
