-- 18: pg_stat_io counts bytes, and WAL.
SELECT v.name, v.value
FROM (
    SELECT sum(read_bytes) AS read_bytes, sum(write_bytes) AS write_bytes, sum(extend_bytes) AS extend_bytes,
           sum(read_time) AS read_time, sum(write_time) AS write_time, sum(extend_time) AS extend_time,
           sum(writes) FILTER (WHERE backend_type NOT IN ('checkpointer', 'background writer')) AS other_writes,
           sum(fsyncs) FILTER (WHERE backend_type NOT IN ('checkpointer', 'background writer')) AS other_fsyncs,
           max(stats_reset) AS stats_reset
    FROM pg_stat_io
    WHERE object <> 'wal'
) i
CROSS JOIN LATERAL (VALUES
    ('io.read_bytes', i.read_bytes::numeric),
    ('io.write_bytes', i.write_bytes::numeric),
    ('io.extend_bytes', i.extend_bytes::numeric),
    ('io.read_time', i.read_time::numeric),
    ('io.write_time', i.write_time::numeric),
    ('io.extend_time', i.extend_time::numeric),
    ('io.stats_reset', extract(epoch FROM i.stats_reset)::numeric),
    ('backends.buffers_written', i.other_writes::numeric),
    ('backends.fsyncs', i.other_fsyncs::numeric),
    ('backends.stats_reset', extract(epoch FROM i.stats_reset)::numeric)
) AS v (name, value)
