-- Checkpointer and background writer; up to 16.
SELECT v.name, v.value
FROM pg_stat_bgwriter b
CROSS JOIN LATERAL (VALUES
    ('checkpoints.timed', b.checkpoints_timed::numeric),
    ('checkpoints.requested', b.checkpoints_req::numeric),
    ('checkpoints.buffers_written', b.buffers_checkpoint::numeric),
    ('checkpoints.stats_reset', extract(epoch FROM b.stats_reset)::numeric),
    ('bgwriter.buffers_clean', b.buffers_clean::numeric),
    ('bgwriter.stats_reset', extract(epoch FROM b.stats_reset)::numeric)
) AS v (name, value)
