-- Delete at most $2 of our rows older than $1 days.
--
-- Shape: a loose index scan walks from one id to the next in idx_metrics_id_created_at (a few ms, whatever the number of rows);
-- each id then gives its oldest rows from the same index, and they go by their ctid. A plain DELETE by time reads every other
-- series of that time, or the whole table.
-- Each look-up repeats the literal id LIKE 'queue_%', without which the partial index cannot be used; its underscore is a
-- wildcard, so the two real prefixes are tested in addition.
DELETE FROM {schema}.metrics
 WHERE ctid = ANY (ARRAY (
        WITH RECURSIVE series AS (
            (SELECT metrics.id
               FROM {schema}.metrics
              WHERE metrics.id LIKE 'queue_%'
              ORDER BY metrics.id
              LIMIT 1)
             UNION ALL
            SELECT following.id
              FROM series
             CROSS JOIN LATERAL (
                    SELECT metrics.id
                      FROM {schema}.metrics
                     WHERE metrics.id LIKE 'queue_%'
                       AND metrics.id > series.id
                     ORDER BY metrics.id
                     LIMIT 1) AS following
        )
        SELECT old.ctid
          FROM series
         CROSS JOIN LATERAL (
                SELECT metrics.ctid
                  FROM {schema}.metrics
                 WHERE metrics.id LIKE 'queue_%'
                   AND metrics.id = series.id
                   AND metrics.created_at < now() - make_interval(days => $1)
                 ORDER BY metrics.created_at
                 LIMIT $2) AS old
         WHERE left(series.id, 12) IN ('queue_count_', 'queue_delay_')
         LIMIT $2))
