-- 14: statements in functions are entries of their own, which would count twice.
SELECT pgstrata.queryid::text AS id, sum(pgstrata.calls) AS calls, sum(pgstrata.total_exec_time) / 1000 AS seconds, sum(pgstrata.rows) AS rows,
       sum(pgstrata.shared_blks_hit) AS blocks_hit, sum(pgstrata.shared_blks_read) AS blocks_read, sum(pgstrata.wal_bytes) AS wal_bytes
  FROM @schema@.pg_stat_statements(false) pgstrata
 WHERE pgstrata.queryid IS NOT NULL AND pgstrata.toplevel
 GROUP BY pgstrata.queryid
