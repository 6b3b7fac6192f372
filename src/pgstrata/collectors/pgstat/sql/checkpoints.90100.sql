-- Checkpoints and background writer; 9.1 to 9.5.
SELECT (ARRAY[
    'checkpoints.timed', 'checkpoints.requested', 'checkpoints.buffers_written', 'bgwriter.buffers_clean',
    'checkpoints.stats_reset', 'bgwriter.stats_reset'
])[n] AS name, (ARRAY[
    b.checkpoints_timed::numeric, b.checkpoints_req::numeric, b.buffers_checkpoint::numeric,
    b.buffers_clean::numeric, extract(epoch FROM b.stats_reset)::numeric, extract(epoch FROM b.stats_reset)::numeric
])[n] AS value
FROM pg_stat_bgwriter b
CROSS JOIN generate_series(1, 6) AS g (n)
