-- 14: pg_stat_wal.
SELECT to_char(extract(epoch FROM statement_timestamp()), 'FM9999999990.0000') AS time, c.name, c.value::text AS value
FROM (
    SELECT v.name, v.value
    FROM pg_stat_database d
    CROSS JOIN LATERAL (VALUES
        ('database.xact_commit', d.xact_commit::numeric),
        ('database.xact_rollback', d.xact_rollback::numeric),
        ('database.blks_read', d.blks_read::numeric),
        ('database.blks_hit', d.blks_hit::numeric),
        ('database.tup_returned', d.tup_returned::numeric),
        ('database.tup_inserted', d.tup_inserted::numeric),
        ('database.tup_updated', d.tup_updated::numeric),
        ('database.tup_deleted', d.tup_deleted::numeric),
        ('database.temp_bytes', d.temp_bytes::numeric),
        ('database.stats_reset', extract(epoch FROM d.stats_reset)::numeric),
        ('io.read_time', d.blk_read_time::numeric),
        ('io.write_time', d.blk_write_time::numeric),
        ('io.stats_reset', extract(epoch FROM d.stats_reset)::numeric)
    ) AS v (name, value)
    WHERE d.datname = current_database() AND (SELECT pg_relation_size('pg_catalog.pg_class') < 524288)
    UNION ALL
    SELECT 'lsn.position', pg_wal_lsn_diff(
        CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END, '0/0'
    )
    UNION ALL
    SELECT v.name, v.value
    FROM pg_stat_bgwriter b
    CROSS JOIN LATERAL (VALUES
        ('checkpoints.timed', b.checkpoints_timed::numeric),
        ('checkpoints.requested', b.checkpoints_req::numeric),
        ('checkpoints.buffers_written', b.buffers_checkpoint::numeric),
        ('checkpoints.stats_reset', extract(epoch FROM b.stats_reset)::numeric),
        ('bgwriter.buffers_clean', b.buffers_clean::numeric),
        ('bgwriter.stats_reset', extract(epoch FROM b.stats_reset)::numeric),
        ('backends.buffers_written', b.buffers_backend::numeric),
        ('backends.fsyncs', b.buffers_backend_fsync::numeric),
        ('backends.stats_reset', extract(epoch FROM b.stats_reset)::numeric)
    ) AS v (name, value)
    WHERE (SELECT pg_relation_size('pg_catalog.pg_class') < 524288)
    UNION ALL
    SELECT v.name, v.value
    FROM pg_stat_wal w
    CROSS JOIN LATERAL (VALUES
        ('wal.records', w.wal_records::numeric),
        ('wal.fpi', w.wal_fpi::numeric),
        ('wal.buffers_full', w.wal_buffers_full::numeric),
        ('wal.stats_reset', extract(epoch FROM w.stats_reset)::numeric),
        ('wal_io.writes', w.wal_write::numeric),
        ('wal_io.syncs', w.wal_sync::numeric),
        ('wal_io.write_time', w.wal_write_time::numeric),
        ('wal_io.sync_time', w.wal_sync_time::numeric),
        ('wal_io.stats_reset', extract(epoch FROM w.stats_reset)::numeric)
    ) AS v (name, value)
    WHERE (SELECT pg_relation_size('pg_catalog.pg_class') < 524288)
) AS c (name, value)
