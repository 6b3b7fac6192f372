-- All tables of the database together; up to 9.0, which does not count runs of autovacuum.
SELECT (ARRAY[
    'tables.n_dead_tup', 'tables.n_tup_hot_upd'
])[n] AS name, (ARRAY[
    t.dead::numeric, t.hot::numeric
])[n] AS value
FROM (SELECT sum(n_dead_tup) AS dead, sum(n_tup_hot_upd) AS hot FROM pg_stat_all_tables) t
CROSS JOIN generate_series(1, 2) AS g (n)
