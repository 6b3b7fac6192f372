-- 9.6 to 12.
       s.calls, s.total_time / 1000 AS seconds, s.rows, s.shared_blks_hit AS blocks_hit, s.shared_blks_read AS blocks_read,
       NULL::int AS wal_bytes, NULL::int AS plans, NULL::int AS plan_seconds,
       NULL::int AS jit_functions, NULL::int AS jit_seconds,
       NULL::int AS since,
       NULL::int AS deallocations, NULL::int AS reset
