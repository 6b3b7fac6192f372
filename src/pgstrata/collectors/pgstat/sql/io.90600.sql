-- Reads and writes of relations, times in milliseconds; up to 15 the buffers that backends wrote are with those by which
-- files grew.
SELECT v.name, v.value
FROM pg_stat_database d
CROSS JOIN pg_stat_bgwriter b
CROSS JOIN LATERAL (VALUES
    ('io.read_time', d.blk_read_time::numeric),
    ('io.write_time', d.blk_write_time::numeric),
    ('io.stats_reset', extract(epoch FROM d.stats_reset)::numeric),
    ('backends.buffers_written', b.buffers_backend::numeric),
    ('backends.fsyncs', b.buffers_backend_fsync::numeric),
    ('backends.stats_reset', extract(epoch FROM b.stats_reset)::numeric)
) AS v (name, value)
WHERE d.datname = current_database()
