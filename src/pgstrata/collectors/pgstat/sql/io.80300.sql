-- Buffers written by backends, including those that extended files; up to 9.0. Reads and writes are not timed.
SELECT (ARRAY[
    'backends.buffers_written'
])[n] AS name, (ARRAY[
    b.buffers_backend::numeric
])[n] AS value
FROM pg_stat_bgwriter b
CROSS JOIN generate_series(1, 1) AS g (n)
