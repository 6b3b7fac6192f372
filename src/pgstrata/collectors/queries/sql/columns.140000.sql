-- 14: pg_stat_statements_info tells of entries that had to go, and of resets.
       s.calls, s.total_exec_time / 1000 AS seconds, s.rows, s.shared_blks_hit AS blocks_hit, s.shared_blks_read AS blocks_read,
       s.wal_bytes AS wal_bytes, s.plans, s.total_plan_time / 1000 AS plan_seconds,
       NULL::int AS jit_functions, NULL::int AS jit_seconds,
       NULL::int AS since,
       (SELECT i.dealloc FROM @schema@.pg_stat_statements_info i) AS deallocations,
       (SELECT extract(epoch FROM i.stats_reset) FROM @schema@.pg_stat_statements_info i) AS reset
