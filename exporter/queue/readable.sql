-- The stored rows after $1 and not after $2 (epoch seconds), as part of other statements: each with its time, whether it
-- climbs, and its number: a held value, or since when a climb waits. NULL is an unreadable value.
--
-- Shape: a value is read as text. A JSON number begins with a sign or a digit, and one that float8 cannot hold has over 300
-- characters, since PostgreSQL writes no exponents: half the cost of jsonb_typeof() and a range check as numeric.
-- date_part() is bit-identical to extract()::float8, at half the cost. OFFSET 0 fences each step: without it the planner pulls
-- the casts up into whatever stands above, several times a row.
-- The literal id LIKE 'queue_%' lets the partial index be used. Its underscore is a wildcard: the statements around this one
-- test the two real prefixes.
SELECT stored.id, stored.created_at, stored.at, stored.climbing,
       CASE WHEN stored.json COLLATE "C" NOT BETWEEN '-' AND ':' THEN NULL
            WHEN octet_length(stored.json) < 300 THEN stored.json::float8
            WHEN abs(stored.json::numeric) <= 1.7976931348623157e308 THEN round(stored.json::numeric, 300)::float8
       END AS number
  FROM (SELECT metrics.id, metrics.created_at,
               date_part('epoch', metrics.created_at) AS at,
               metrics.value ? 'since' AS climbing,
               coalesce(metrics.value -> 'since', metrics.value)::text AS json
          FROM {schema}.metrics
         WHERE metrics.id LIKE 'queue_%'
           AND metrics.created_at > to_timestamp($1::float8)
           AND metrics.created_at <= to_timestamp($2::float8)
           {narrowed}
        OFFSET 0) AS stored
OFFSET 0
