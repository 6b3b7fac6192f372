-- 14: pg_stat_wal.
SELECT v.name, v.value
FROM pg_stat_wal w
CROSS JOIN LATERAL (VALUES
    ('wal.records', w.wal_records::numeric),
    ('wal.fpi', w.wal_fpi::numeric),
    ('wal.buffers_full', w.wal_buffers_full::numeric),
    ('wal.stats_reset', extract(epoch FROM w.stats_reset)::numeric)
) AS v (name, value)
