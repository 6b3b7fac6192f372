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
           sum(read_time) FILTER (WHERE backend_type = 'client backend') AS client_read_time
    FROM pg_stat_io
    WHERE object <> 'wal'
) i
CROSS JOIN LATERAL (VALUES
    ('io.reads', i.reads::numeric),
    ('io.writes', i.writes::numeric),
    ('io.extends', i.extends::numeric),
    ('io.hits', i.hits::numeric),
    ('io.evictions', i.evictions::numeric),
    ('io.fsyncs', i.fsyncs::numeric),
    ('io.read_bytes', i.read_bytes::numeric),
    ('io.write_bytes', i.write_bytes::numeric),
    ('io.extend_bytes', i.extend_bytes::numeric),
    ('io.client_read_time', i.client_read_time::numeric)
) AS v (name, value)
