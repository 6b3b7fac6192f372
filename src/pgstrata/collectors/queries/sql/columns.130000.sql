-- 13: times of planning and of executing apart, WAL.
       s.calls, s.total_exec_time / 1000 AS seconds, s.rows, s.shared_blks_hit AS blocks_hit, s.shared_blks_read AS blocks_read,
       s.wal_bytes AS wal_bytes, s.plans, s.total_plan_time / 1000 AS plan_seconds,
       NULL::int AS jit_functions, NULL::int AS jit_seconds,
       NULL::int AS since,
       NULL::int AS deallocations, NULL::int AS reset
