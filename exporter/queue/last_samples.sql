-- The newest readable sample of every series in (now - 900 s, now], and how many unreadable rows are newer than $1
-- (epoch seconds; NULL: all of these 900 s). One row a series: id, value (JSON text), at; the last row has only `unreadable`.
-- Of the series that ended in a 0 more than 25 s ago only the newest $2 are sent: such a series decides nothing any more, and
-- where tags come and go by the thousand the rest would be most of the answer.
--
-- Shape: OFFSET 0 fences the time range, so that it is read through metrics_sort_idx whatever the planner believes about the
-- names. Without the literal id LIKE 'queue_%' the partial index cannot be chosen, which would read every old row of a series.
-- left() says what that LIKE does not: its underscore is a wildcard.
-- Numbers are compared as numeric: a cast of 1e400 or 1e-400 to float8 is an error. What a foreign object holds besides
-- `since` is not sent.
WITH recent AS (
    SELECT row.id, row.created_at, row.number, row.climbing,
           coalesce(abs(row.number::numeric) <= 1.7976931348623157e308, false) AS readable
      FROM (SELECT near.id, near.created_at,
                   jsonb_typeof(near.value) = 'object' AS climbing,
                   CASE WHEN jsonb_typeof(near.value) = 'number' THEN near.value
                        WHEN jsonb_typeof(near.value -> 'since') = 'number' THEN near.value -> 'since'
                   END AS number
              FROM (SELECT metrics.id, metrics.value, metrics.created_at
                      FROM {schema}.metrics
                     WHERE metrics.created_at > now() - interval '900 seconds'
                       AND metrics.created_at <= now()
                     ORDER BY metrics.created_at DESC
                    OFFSET 0) AS near
             WHERE left(near.id, 12) IN ('queue_count_', 'queue_delay_')
            OFFSET 0) AS row
),
newest AS (
    SELECT DISTINCT ON (recent.id COLLATE "C")
           recent.id,
           CASE WHEN recent.climbing THEN jsonb_build_object('since', recent.number) ELSE recent.number END AS value,
           recent.created_at,
           NOT recent.climbing AND recent.number::numeric = 0 AS drained
      FROM recent
     WHERE recent.readable
     -- Rows of one moment: the climb, else the highest value.
     ORDER BY recent.id COLLATE "C", recent.created_at DESC, recent.climbing DESC, recent.number::numeric DESC
)
SELECT ranked.id, ranked.value::text AS value, date_part('epoch', ranked.created_at) AS at, NULL::bigint AS unreadable
  FROM (SELECT newest.id, newest.value, newest.created_at, newest.drained,
               row_number() OVER (PARTITION BY newest.drained
                                  ORDER BY newest.created_at DESC, newest.id COLLATE "C") AS place
          FROM newest) AS ranked
 WHERE NOT ranked.drained
    OR ranked.created_at > now() - interval '25 seconds'
    OR ranked.place <= $2
 UNION ALL
SELECT NULL, NULL, NULL, count(*)
  FROM recent
 WHERE NOT recent.readable
   AND ($1::float8 IS NULL OR date_part('epoch', recent.created_at) > $1)
