-- 14: statements in functions are entries of their own, which would count twice.
SELECT concat_ws('/', coalesce(s.queryid::text, ''), s.userid, s.dbid) AS pgstrata,
       sum(s.calls) AS calls, sum(s.total_exec_time) / 1000 AS seconds,
       sum(s.rows) AS rows, sum(s.shared_blks_hit) AS blocks_hit, sum(s.shared_blks_read) AS blocks_read,
       sum(s.wal_bytes) AS wal_bytes
  FROM @schema@.pg_stat_statements(false) s
 WHERE s.toplevel
 GROUP BY s.queryid, s.userid, s.dbid
