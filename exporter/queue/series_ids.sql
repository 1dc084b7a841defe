-- Every stored series, by a loose index scan over idx_metrics_id_created_at: from one id to the next, whatever the number of
-- rows. SELECT DISTINCT would read all of them. In the full order of that index no other one can serve: the index on all ids
-- would walk through everybody else's rows behind ours.
WITH RECURSIVE series AS (
    (SELECT metrics.id
       FROM {schema}.metrics
      WHERE metrics.id LIKE 'queue_%'
      ORDER BY metrics.id, metrics.created_at DESC
      LIMIT 1)
     UNION ALL
    SELECT following.id
      FROM series
     CROSS JOIN LATERAL (
            SELECT metrics.id
              FROM {schema}.metrics
             WHERE metrics.id LIKE 'queue_%'
               AND metrics.id > series.id
             ORDER BY metrics.id, metrics.created_at DESC
             LIMIT 1) AS following
)
SELECT series.id
  FROM series
 WHERE left(series.id, 12) IN ('queue_count_', 'queue_delay_')
