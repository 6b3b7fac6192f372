-- 15: JIT.
       s.calls, s.total_exec_time / 1000 AS seconds, s.rows, s.shared_blks_hit AS blocks_hit, s.shared_blks_read AS blocks_read,
       s.wal_bytes AS wal_bytes, s.plans, s.total_plan_time / 1000 AS plan_seconds,
       s.jit_functions,
       (s.jit_generation_time + s.jit_inlining_time + s.jit_optimization_time + s.jit_emission_time) / 1000 AS jit_seconds,
       NULL::int AS since,
       (SELECT i.dealloc FROM @schema@.pg_stat_statements_info i) AS deallocations,
       (SELECT extract(epoch FROM i.stats_reset) FROM @schema@.pg_stat_statements_info i) AS reset
