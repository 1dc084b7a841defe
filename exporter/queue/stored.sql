-- One page of stored rows, at least $5 where there are as many, by id and newest first, which is the order of
-- idx_metrics_id_created_at. It follows the row (id $3, created_at $4) and ends with all rows of its last moment, since nothing
-- makes a row unique.
--
-- Shape: the rest of one series and the series behind it are two ranges of the index; one condition over
-- both would read the series from its beginning.
SELECT page.id, page.created_at, page.at, page.climbing, page.number
  FROM (({rest}) UNION ALL ({following})) AS page
 ORDER BY page.id, page.created_at DESC
 FETCH FIRST ($5::bigint) ROWS WITH TIES
