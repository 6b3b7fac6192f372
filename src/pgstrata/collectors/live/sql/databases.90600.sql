-- All databases together; the names are those of pgstat's view of one database.
SELECT v.name, v.value
FROM (
    SELECT sum(xact_commit) AS xact_commit, sum(xact_rollback) AS xact_rollback, sum(blks_read) AS blks_read,
           sum(blks_hit) AS blks_hit, sum(tup_returned) AS tup_returned, sum(tup_inserted) AS tup_inserted,
           sum(tup_updated) AS tup_updated, sum(tup_deleted) AS tup_deleted, sum(temp_bytes) AS temp_bytes,
           sum(deadlocks) AS deadlocks, sum(numbackends) AS numbackends, max(stats_reset) AS stats_reset
    FROM pg_stat_database
) d
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
    ('database.deadlocks', d.deadlocks::numeric),
    ('database.backends', d.numbackends::numeric),
    ('database.stats_reset', extract(epoch FROM d.stats_reset)::numeric)
) AS v (name, value)
