-- Delete at most $2 of our rows older than $1 days.
--
-- Shape: series_ids.sql walks from one id to the next in idx_metrics_id_created_at (a few ms, whatever the number of rows); each
-- id then gives its oldest rows from the same index, and they go by their ctid. A plain DELETE by time reads every other
-- series of that time, or the whole table. The look-up repeats the literal id LIKE 'queue_%', without which the partial index
-- cannot be used.
DELETE FROM {schema}.metrics
 WHERE ctid = ANY (ARRAY (
        SELECT old.ctid
          FROM ({series_ids}) AS series
         CROSS JOIN LATERAL (
                SELECT metrics.ctid
                  FROM {schema}.metrics
                 WHERE metrics.id LIKE 'queue_%'
                   AND metrics.id = series.id
                   AND metrics.created_at < now() - make_interval(days => $1)
                 ORDER BY metrics.created_at
                 LIMIT $2) AS old
         LIMIT $2))
