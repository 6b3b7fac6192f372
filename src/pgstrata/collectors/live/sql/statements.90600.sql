-- Up to 12. Texts are not read: they lie in a file.
SELECT pgstrata.queryid::text AS id, sum(pgstrata.calls) AS calls, sum(pgstrata.total_time) / 1000 AS seconds, sum(pgstrata.rows) AS rows,
       sum(pgstrata.shared_blks_hit) AS blocks_hit, sum(pgstrata.shared_blks_read) AS blocks_read, 0 AS wal_bytes
  FROM @schema@.pg_stat_statements(false) pgstrata
 WHERE pgstrata.queryid IS NOT NULL
 GROUP BY pgstrata.queryid
