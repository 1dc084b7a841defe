-- The slots of every series of a window: from $3 to $2 (epoch seconds), slots of $4 seconds. At most 122 rows a series, in
-- order of id and slot. Slot -1 is what came before, since $1, of which only the last sample is used.
--
-- Shape: one pass and one hash aggregation over the rows of the window (readable.sql).
-- Arrays compare element by element: min(pair) is the earliest sample with the lowest value at that time, max(pair) the latest
-- with the highest; one array a row serves all three. The prefixes are tested on the slots, behind a fence: left() on every row
-- would cost a tenth of the whole.
WITH slots AS (
    SELECT sample.id, sample.slot,
           min(sample.pair) AS first,
           max(sample.pair) AS last,
           max(sample.pair) FILTER (WHERE sample.climbing) AS climb,
           max(sample.value) AS written_peak,
           bool_and(sample.climbing) AND max(sample.number) < min(sample.number) + 1 AS ramp
      FROM (SELECT readable.id, readable.number, readable.climbing,
                   CASE WHEN readable.climbing THEN readable.at - readable.number ELSE readable.number END AS value,
                   ARRAY[readable.at,
                         CASE WHEN readable.climbing THEN readable.at - readable.number ELSE readable.number END] AS pair,
                   greatest(floor((readable.at - $3::float8) / $4::float8), -1)::int AS slot
              FROM ({readable}) AS readable
             WHERE readable.number IS NOT NULL
            OFFSET 0) AS sample
     GROUP BY sample.id, sample.slot
    OFFSET 0
)
SELECT slots.id, slots.slot,
       slots.first[1] AS first,
       slots.last[1] AS last,
       slots.first[2] AS first_value,
       slots.last[2] AS last_value,
       greatest(slots.written_peak, ended.at - (slots.climb[1] - slots.climb[2])) AS peak,
       coalesce(slots.climb[1] = slots.last[1], false) AS last_climbing,
       slots.ramp
  FROM slots
  LEFT JOIN LATERAL (
       -- Where another sample of the slot ended its latest climb, the climb reached up to the next readable sample. A
       -- millisecond of slack keeps a row from being its own successor: to_timestamp() and date_part() are exact to a
       -- microsecond only.
       SELECT date_part('epoch', next.created_at) AS at
         FROM {schema}.metrics AS next
        WHERE slots.climb[1] < slots.last[1]
          AND next.id = slots.id
          AND next.id LIKE 'queue_%'
          AND next.created_at > to_timestamp(slots.climb[1]) + interval '1 millisecond'
          AND CASE WHEN jsonb_typeof(next.value) = 'number'
                   THEN abs(next.value::numeric) <= 1.7976931348623157e308
                   WHEN jsonb_typeof(next.value -> 'since') = 'number'
                   THEN abs((next.value -> 'since')::numeric) <= 1.7976931348623157e308
                   ELSE false END
        ORDER BY next.created_at
        LIMIT 1) AS ended ON true
 WHERE left(slots.id, 12) IN ('queue_count_', 'queue_delay_')
 ORDER BY slots.id COLLATE "C", slots.slot
