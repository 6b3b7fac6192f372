-- Checkpoints and background writer; up to 9.0, which has no time of reset.
SELECT (ARRAY[
    'checkpoints.timed', 'checkpoints.requested', 'checkpoints.buffers_written', 'bgwriter.buffers_clean'
])[n] AS name, (ARRAY[
    b.checkpoints_timed::numeric, b.checkpoints_req::numeric, b.buffers_checkpoint::numeric,
    b.buffers_clean::numeric
])[n] AS value
FROM pg_stat_bgwriter b
CROSS JOIN generate_series(1, 4) AS g (n)
