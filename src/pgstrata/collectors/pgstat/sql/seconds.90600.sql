-- 9.6: times in milliseconds; buffers that backends wrote are with those by which files grew. Up to 14 reading statistics
-- makes the server write a file with those of all tables of the database. Where there are more than some hundred of them,
-- by the size of pg_class, only the position in the WAL is read.
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
    SELECT 'lsn.position', pg_xlog_location_diff(
        CASE WHEN pg_is_in_recovery() THEN pg_last_xlog_replay_location() ELSE pg_current_xlog_insert_location() END,
        '0/0'
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
) AS c (name, value)
