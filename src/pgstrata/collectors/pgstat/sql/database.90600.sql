-- The database of the run.
SELECT v.name, v.value
FROM pg_stat_database d
CROSS JOIN LATERAL (VALUES
    ('database.xact_commit', d.xact_commit::numeric),
    ('database.xact_rollback', d.xact_rollback::numeric),
    ('database.blks_read', d.blks_read::numeric),
    ('database.blks_hit', d.blks_hit::numeric),
    ('database.tup_returned', d.tup_returned::numeric),
    ('database.tup_inserted', d.tup_inserted::numeric),
    ('database.tup_updated', d.tup_updated::numeric),
    ('database.tup_deleted', d.tup_deleted::numeric),
    ('database.temp_files', d.temp_files::numeric),
    ('database.temp_bytes', d.temp_bytes::numeric),
    ('database.deadlocks', d.deadlocks::numeric),
    ('database.conflicts', d.conflicts::numeric),
    ('database.stats_reset', extract(epoch FROM d.stats_reset)::numeric)
) AS v (name, value)
WHERE d.datname = current_database()
