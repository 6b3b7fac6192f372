-- All databases together; the names are those of pgstat's view of one database.
SELECT v.name, v.value
FROM (
    SELECT sum(xact_commit) AS xact_commit, sum(xact_rollback) AS xact_rollback, sum(blks_read) AS blks_read,
           sum(blks_hit) AS blks_hit, sum(tup_returned) AS tup_returned, sum(tup_inserted) AS tup_inserted,
           sum(tup_updated) AS tup_updated, sum(tup_deleted) AS tup_deleted, sum(temp_bytes) AS temp_bytes,
           sum(deadlocks) AS deadlocks, sum(numbackends) AS numbackends, max(stats_reset) AS stats_reset
    FROM pg_stat_database
) pgstrata
CROSS JOIN LATERAL (VALUES
    ('database.xact_commit', pgstrata.xact_commit::numeric),
    ('database.xact_rollback', pgstrata.xact_rollback::numeric),
    ('database.blks_read', pgstrata.blks_read::numeric),
    ('database.blks_hit', pgstrata.blks_hit::numeric),
    ('database.tup_returned', pgstrata.tup_returned::numeric),
    ('database.tup_inserted', pgstrata.tup_inserted::numeric),
    ('database.tup_updated', pgstrata.tup_updated::numeric),
    ('database.tup_deleted', pgstrata.tup_deleted::numeric),
    ('database.temp_bytes', pgstrata.temp_bytes::numeric),
    ('database.deadlocks', pgstrata.deadlocks::numeric),
    ('database.backends', pgstrata.numbackends::numeric),
    ('database.stats_reset', extract(epoch FROM pgstrata.stats_reset)::numeric)
) AS v (name, value)
