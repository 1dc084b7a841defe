-- The slots of every series of a window: from $1 to $2 (epoch seconds), slots of $3 seconds, ids that begin with one of $4.
-- At most 122 rows a series, in order of id and slot. Slot -1 is what came in the 900 s before, of which only the last sample is used.
--
-- Shape: OFFSET 0 fences the projection of (id, at, value, since, slot). Without it the planner pulls the casts up into each
-- aggregate, several times a row: 2.5 to 3.5 times slower. date_part() is bit-identical to extract()::float8 at half the cost.
-- The literal id LIKE 'queue_%' lets the partial index be used; its underscore is a wildcard, so left() says what is meant.
-- Numbers are compared as numeric before they become float8: a cast of 1e400 or of 1e-400 is an error.
WITH slots AS (
    SELECT sample.id, sample.slot,
           min(sample.at) AS first,
           max(sample.at) AS last,
           -- Arrays compare element by element: the value at the earliest time, the lowest of equal times, and so on.
           (min(ARRAY[sample.at, sample.value]))[2] AS first_value,
           (max(ARRAY[sample.at, sample.value]))[2] AS last_value,
           max(sample.value) AS written_peak,
           max(ARRAY[sample.at, sample.since]) FILTER (WHERE sample.since IS NOT NULL) AS climb,
           count(*) = count(sample.since) AND max(sample.since) - min(sample.since) < 1 AS ramp
      FROM (SELECT row.id, row.at,
                   CASE WHEN row.climbing THEN row.at - row.number ELSE row.number END AS value,
                   CASE WHEN row.climbing THEN row.number END AS since,
                   CASE WHEN row.at < $1 THEN -1 ELSE floor((row.at - $1) / $3)::int END AS slot
              FROM (SELECT stored.id, date_part('epoch', stored.created_at) AS at, stored.climbing,
                           CASE WHEN abs(stored.number::numeric) BETWEEN 1e-300 AND 1e300
                                THEN stored.number::float8
                                WHEN abs(stored.number::numeric) < 1e-300 THEN 0
                           END AS number
                      FROM (SELECT metrics.id, metrics.created_at,
                                   jsonb_typeof(metrics.value) = 'object' AS climbing,
                                   CASE WHEN jsonb_typeof(metrics.value) = 'number' THEN metrics.value
                                        WHEN jsonb_typeof(metrics.value -> 'since') = 'number'
                                        THEN metrics.value -> 'since'
                                   END AS number
                              FROM {schema}.metrics
                             WHERE metrics.id LIKE 'queue_%'
                               AND left(metrics.id, 12) = ANY ($4)
                               AND metrics.created_at > to_timestamp($1 - 900)
                               AND metrics.created_at <= to_timestamp($2)
                               {narrowed}
                            OFFSET 0) AS stored
                    OFFSET 0) AS row
             WHERE row.number IS NOT NULL
            OFFSET 0) AS sample
     GROUP BY sample.id, sample.slot
)
SELECT slots.id, slots.slot, slots.first, slots.last, slots.first_value, slots.last_value,
       greatest(slots.written_peak, ended.top) AS peak,
       coalesce(slots.climb[1] = slots.last, false) AS last_climbing,
       slots.ramp
  FROM slots
  LEFT JOIN LATERAL (
       -- Where another sample of the slot ended its latest climb: the climb's top, at the next readable sample. A millisecond of
       -- slack keeps a row from being its own successor: to_timestamp() and date_part() are exact to a microsecond only.
       SELECT date_part('epoch', next.created_at) - slots.climb[2] AS top
         FROM {schema}.metrics AS next
        WHERE slots.climb[1] < slots.last
          AND next.id = slots.id
          AND next.id LIKE 'queue_%'
          AND next.created_at > to_timestamp(slots.climb[1]) + interval '1 millisecond'
          AND CASE WHEN jsonb_typeof(next.value) = 'number' THEN abs(next.value::numeric) < 1e300
                   WHEN jsonb_typeof(next.value -> 'since') = 'number'
                   THEN abs((next.value -> 'since')::numeric) < 1e300
                   ELSE false END
        ORDER BY next.created_at
        LIMIT 1) AS ended ON true
 ORDER BY slots.id COLLATE "C", slots.slot
