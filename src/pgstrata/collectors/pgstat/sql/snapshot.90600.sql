-- 9.6
SELECT v.name, v.value::text AS value
FROM pg_stat_database d
CROSS JOIN LATERAL (VALUES
    ('database.xact_commit', d.xact_commit::numeric),
    ('database.xact_rollback', d.xact_rollback::numeric),
    ('database.blks_read', d.blks_read::numeric),
    ('database.blks_hit', d.blks_hit::numeric),
    ('database.tup_returned', d.tup_returned::numeric),
    ('database.tup_fetched', d.tup_fetched::numeric),
    ('database.tup_inserted', d.tup_inserted::numeric),
    ('database.tup_updated', d.tup_updated::numeric),
    ('database.tup_deleted', d.tup_deleted::numeric),
    ('database.temp_files', d.temp_files::numeric),
    ('database.temp_bytes', d.temp_bytes::numeric),
    ('database.deadlocks', d.deadlocks::numeric),
    ('database.conflicts', d.conflicts::numeric),
    ('database.stats_reset', extract(epoch FROM d.stats_reset)::numeric)
) AS v (name, value)
WHERE d.datname = current_database()
UNION ALL
SELECT 'database.size', pg_database_size(current_database())::text
UNION ALL
SELECT v.name, v.value::text
FROM (
    SELECT sum(autovacuum_count) AS autovacuum, sum(autoanalyze_count) AS autoanalyze,
           sum(n_dead_tup) AS dead, sum(n_tup_hot_upd) AS hot
    FROM pg_stat_all_tables
) t
CROSS JOIN LATERAL (VALUES
    ('tables.autovacuum_count', t.autovacuum),
    ('tables.autoanalyze_count', t.autoanalyze),
    ('tables.n_dead_tup', t.dead),
    ('tables.n_tup_hot_upd', t.hot)
) AS v (name, value)
UNION ALL
SELECT 'lsn.position', pg_xlog_location_diff(
    CASE WHEN pg_is_in_recovery() THEN pg_last_xlog_replay_location() ELSE pg_current_xlog_insert_location() END, '0/0'
)::text
UNION ALL
SELECT v.name, v.value::text
FROM pg_stat_bgwriter b
CROSS JOIN LATERAL (VALUES
    ('checkpoints.timed', b.checkpoints_timed::numeric),
    ('checkpoints.requested', b.checkpoints_req::numeric),
    ('checkpoints.buffers_written', b.buffers_checkpoint::numeric),
    ('checkpoints.stats_reset', extract(epoch FROM b.stats_reset)::numeric),
    ('bgwriter.buffers_clean', b.buffers_clean::numeric),
    ('bgwriter.buffers_alloc', b.buffers_alloc::numeric)
) AS v (name, value)
