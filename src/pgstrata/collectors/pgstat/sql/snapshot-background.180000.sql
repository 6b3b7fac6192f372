SELECT v.name, v.value::text
FROM pg_stat_checkpointer c
CROSS JOIN pg_stat_bgwriter b
CROSS JOIN LATERAL (VALUES
    ('checkpoints.timed', c.num_timed::numeric),
    ('checkpoints.requested', c.num_requested::numeric),
    ('checkpoints.done', c.num_done::numeric),
    ('checkpoints.buffers_written', c.buffers_written::numeric),
    ('checkpoints.stats_reset', extract(epoch FROM c.stats_reset)::numeric),
    ('bgwriter.buffers_clean', b.buffers_clean::numeric),
    ('bgwriter.buffers_alloc', b.buffers_alloc::numeric)
) AS v (name, value)
