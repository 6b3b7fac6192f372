SELECT v.name, v.value::text
FROM pg_stat_wal w
CROSS JOIN LATERAL (VALUES
    ('wal.records', w.wal_records::numeric),
    ('wal.fpi', w.wal_fpi::numeric),
    ('wal.bytes', w.wal_bytes::numeric),
    ('wal.buffers_full', w.wal_buffers_full::numeric),
    ('wal.stats_reset', extract(epoch FROM w.stats_reset)::numeric)
) AS v (name, value)
