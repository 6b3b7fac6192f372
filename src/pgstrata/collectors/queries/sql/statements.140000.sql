-- 14: pg_stat_statements_info tells of entries that had to go, and of resets.
-- A row for each statement of this user in this database, in all from the start of the server on. @schema@ is the
-- extension's, @constant@ what a constant is: none leaves the server. What pgstrata itself asks is left out.
SELECT s.queryid::text AS id,
       translate(regexp_replace(s.query, @constant@, '\1\2\3?', 'g'), E'\t\n\r', '   ') AS query,
       s.calls, s.total_exec_time / 1000 AS seconds, s.rows, s.shared_blks_hit AS blocks_hit, s.shared_blks_read AS blocks_read,
       s.wal_bytes AS wal_bytes, s.plans, s.total_plan_time / 1000 AS plan_seconds,
       NULL::int AS jit_functions, NULL::int AS jit_seconds,
       NULL::int AS since,
       (SELECT i.dealloc FROM @schema@.pg_stat_statements_info i) AS deallocations,
       (SELECT extract(epoch FROM i.stats_reset) FROM @schema@.pg_stat_statements_info i) AS reset
  FROM @schema@.pg_stat_statements s
 WHERE s.dbid = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
   AND s.userid = (SELECT r.oid FROM pg_roles r WHERE r.rolname = current_user)
   AND s.queryid IS NOT NULL AND s.query !~* '\mpg_(stat|catalog|extension|settings)|clock_timestamp\(\)\) as server'
