-- 18: writes of WAL moved to pg_stat_io; what fills new files of WAL is not among them here.
SELECT v.name, v.value
FROM (
    SELECT sum(writes) AS writes, sum(fsyncs) AS syncs, sum(write_time) AS write_time, sum(fsync_time) AS sync_time,
           max(stats_reset) AS stats_reset
    FROM pg_stat_io
    WHERE object = 'wal' AND context = 'normal'
) i
CROSS JOIN LATERAL (VALUES
    ('wal_io.writes', i.writes::numeric),
    ('wal_io.syncs', i.syncs::numeric),
    ('wal_io.write_time', i.write_time::numeric),
    ('wal_io.sync_time', i.sync_time::numeric),
    ('wal_io.stats_reset', extract(epoch FROM i.stats_reset)::numeric)
) AS v (name, value)
