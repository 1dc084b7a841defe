-- Integrals over time and highest values of some series from $3 to $2 (epoch seconds) on a grid of $4 seconds: one row for
-- each series and step in which it drew anything; $1 is 900 s before $3. Exact: every sample is in force until the next one,
-- for 900 s at the most, and each stretch is cut at the steps and integrated. What is below 0 is drawn, and counted, as 0.
--
-- Samples at one moment count as one: the highest value, climbing when one of them does. Numbers are bounded, since a product
-- that float8 cannot hold is an error.
WITH sample AS (
    SELECT row.id, row.at, max(row.value) AS value, bool_or(row.climbing) AS climbing
      FROM (SELECT readable.id, readable.at, readable.climbing,
                   CASE WHEN readable.climbing THEN readable.at - readable.number ELSE readable.number END AS value
              FROM (SELECT id, at, climbing, least(greatest(number, -1e200), 1e200) AS number
                      FROM ({readable}) AS stored
                     WHERE number IS NOT NULL) AS readable) AS row
     GROUP BY row.id, row.at
),
stretch AS (
    SELECT sample.id, sample.at, sample.value, sample.climbing,
           greatest(sample.at, $3::float8) AS begins,
           least(lead(sample.at) OVER (PARTITION BY sample.id ORDER BY sample.at), sample.at + 900, $2::float8) AS ends
      FROM sample
),
piece AS (
    SELECT stretch.id, step.number AS step, stretch.climbing,
           greatest(stretch.begins, $3::float8 + step.number * $4::float8) AS begins,
           least(stretch.ends, $3::float8 + (step.number + 1) * $4::float8) AS ends,
           stretch.at - stretch.value AS since,
           greatest(stretch.value, 0) AS height
      FROM stretch
     CROSS JOIN LATERAL generate_series(
            floor((stretch.begins - $3::float8) / $4::float8)::int,
            floor((stretch.ends - $3::float8) / $4::float8)::int) AS step (number)
     WHERE stretch.ends > stretch.begins
)
SELECT piece.id, piece.step,
       sum(CASE WHEN NOT piece.climbing THEN (piece.ends - piece.begins) * piece.height
                WHEN piece.ends <= piece.since THEN 0
                ELSE (piece.ends - greatest(piece.begins, piece.since))
                     * (piece.ends - piece.since + greatest(piece.begins - piece.since, 0)) / 2 END) AS area,
       max(CASE WHEN piece.climbing THEN greatest(piece.ends - piece.since, 0) ELSE piece.height END) AS highest
  FROM piece
 WHERE piece.ends > piece.begins
 GROUP BY piece.id, piece.step
