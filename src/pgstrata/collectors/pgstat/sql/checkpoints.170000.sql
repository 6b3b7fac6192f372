-- 17: counters of checkpoints moved to pg_stat_checkpointer.
SELECT v.name, v.value
FROM pg_stat_checkpointer k
CROSS JOIN pg_stat_bgwriter b
CROSS JOIN LATERAL (VALUES
    ('checkpoints.timed', k.num_timed::numeric),
    ('checkpoints.requested', k.num_requested::numeric),
    ('checkpoints.buffers_written', k.buffers_written::numeric),
    ('checkpoints.stats_reset', extract(epoch FROM k.stats_reset)::numeric),
    ('bgwriter.buffers_clean', b.buffers_clean::numeric),
    ('bgwriter.stats_reset', extract(epoch FROM b.stats_reset)::numeric)
) AS v (name, value)
