-- Reads and writes of relations, times in milliseconds; 9.2 to 9.5.
SELECT (ARRAY[
    'io.read_time', 'io.write_time', 'io.stats_reset', 'backends.buffers_written', 'backends.fsyncs',
    'backends.stats_reset'
])[n] AS name, (ARRAY[
    d.blk_read_time::numeric, d.blk_write_time::numeric, extract(epoch FROM d.stats_reset)::numeric,
    b.buffers_backend::numeric, b.buffers_backend_fsync::numeric, extract(epoch FROM b.stats_reset)::numeric
])[n] AS value
FROM pg_stat_database d CROSS JOIN pg_stat_bgwriter b
CROSS JOIN generate_series(1, 6) AS g (n)
WHERE d.datname = current_database()
