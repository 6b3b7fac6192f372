SELECT v.name, v.value::text
FROM (
    SELECT sum(reads) AS reads,
           sum(writes) AS writes,
           sum(extends) AS extends,
           sum(hits) AS hits,
           sum(evictions) AS evictions,
           sum(fsyncs) AS fsyncs,
           sum(read_bytes) AS read_bytes,
           sum(write_bytes) AS write_bytes,
           sum(extend_bytes) AS extend_bytes,
           sum(fsync_time) FILTER (WHERE backend_type = 'client backend') AS client_fsync_time
    FROM pg_stat_io
    WHERE object = 'wal'
) i
CROSS JOIN LATERAL (VALUES
    ('io_wal.reads', i.reads::numeric),
    ('io_wal.writes', i.writes::numeric),
    ('io_wal.extends', i.extends::numeric),
    ('io_wal.hits', i.hits::numeric),
    ('io_wal.evictions', i.evictions::numeric),
    ('io_wal.fsyncs', i.fsyncs::numeric),
    ('io_wal.read_bytes', i.read_bytes::numeric),
    ('io_wal.write_bytes', i.write_bytes::numeric),
    ('io_wal.extend_bytes', i.extend_bytes::numeric),
    ('io_wal.client_fsync_time', i.client_fsync_time::numeric)
) AS v (name, value)
