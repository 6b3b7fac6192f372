-- Writes and syncs of WAL, times in milliseconds; up to 17.
SELECT v.name, v.value
FROM pg_stat_wal w
CROSS JOIN LATERAL (VALUES
    ('wal_io.writes', w.wal_write::numeric),
    ('wal_io.syncs', w.wal_sync::numeric),
    ('wal_io.write_time', w.wal_write_time::numeric),
    ('wal_io.sync_time', w.wal_sync_time::numeric),
    ('wal_io.stats_reset', extract(epoch FROM w.stats_reset)::numeric)
) AS v (name, value)
