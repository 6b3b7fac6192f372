SELECT v.name, v.value::text
FROM (
    SELECT sum(reads) AS reads,
           sum(writes) AS writes,
           sum(extends) AS extends,
           sum(hits) AS hits,
           sum(evictions) AS evictions,
           sum(fsyncs) AS fsyncs,
           sum(read_time) FILTER (WHERE backend_type = 'client backend') AS client_read_time
    FROM pg_stat_io
) i
CROSS JOIN LATERAL (VALUES
    ('io.reads', i.reads::numeric),
    ('io.writes', i.writes::numeric),
    ('io.extends', i.extends::numeric),
    ('io.hits', i.hits::numeric),
    ('io.evictions', i.evictions::numeric),
    ('io.fsyncs', i.fsyncs::numeric),
    ('io.client_read_time', i.client_read_time::numeric)
) AS v (name, value)
