-- The database of the run; up to 9.1.
SELECT (ARRAY[
    'database.xact_commit', 'database.xact_rollback', 'database.blks_read', 'database.blks_hit',
    'database.tup_returned', 'database.tup_inserted', 'database.tup_updated', 'database.tup_deleted'
])[n] AS name, (ARRAY[
    d.xact_commit::numeric, d.xact_rollback::numeric, d.blks_read::numeric, d.blks_hit::numeric,
    d.tup_returned::numeric, d.tup_inserted::numeric, d.tup_updated::numeric, d.tup_deleted::numeric
])[n] AS value
FROM pg_stat_database d
CROSS JOIN generate_series(1, 8) AS g (n)
WHERE d.datname = current_database()
