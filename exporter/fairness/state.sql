-- Everything a replica looks at each cycle, in one statement: our two state rows and (unless the file pins them all, see
-- look.py) Windmill's four settings. A replica that is not due, or loses, does nothing else: no write, no transaction id,
-- no WAL. The age is taken from clock_timestamp(), since another replica's claim may carry a now() later than ours; it is
-- NULL at an infinite updated_at, which counts as stale.
SELECT 'state' AS source, state.name,
       {value} AS value,
       CASE WHEN isfinite(state.updated_at)
            THEN date_part('epoch', clock_timestamp() - state.updated_at) END AS age_seconds,
       date_part('epoch', now()) AS now
  FROM {schema}.background_task_state AS state
 WHERE state.name IN ('workspace_fairness', 'windmill_exporter_fairness')
 UNION ALL
SELECT 'clock', '', NULL, NULL, date_part('epoch', now())
