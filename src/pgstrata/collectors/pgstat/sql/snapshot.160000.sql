-- 16: pg_stat_io.
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
SELECT 'lsn.position', pg_wal_lsn_diff(
    CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END, '0/0'
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
UNION ALL
SELECT v.name, v.value::text
FROM pg_stat_wal w
CROSS JOIN LATERAL (VALUES
    ('wal.records', w.wal_records::numeric),
    ('wal.fpi', w.wal_fpi::numeric),
    ('wal.bytes', w.wal_bytes::numeric),
    ('wal.buffers_full', w.wal_buffers_full::numeric),
    ('wal.write', w.wal_write::numeric),
    ('wal.sync', w.wal_sync::numeric),
    ('wal.stats_reset', extract(epoch FROM w.stats_reset)::numeric)
) AS v (name, value)
UNION ALL
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
