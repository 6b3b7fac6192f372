-- As before, with the calls of fsync that backends made; 9.1.
SELECT (ARRAY[
    'backends.buffers_written', 'backends.fsyncs', 'backends.stats_reset'
])[n] AS name, (ARRAY[
    b.buffers_backend::numeric, b.buffers_backend_fsync::numeric, extract(epoch FROM b.stats_reset)::numeric
])[n] AS value
FROM pg_stat_bgwriter b
CROSS JOIN generate_series(1, 3) AS g (n)
