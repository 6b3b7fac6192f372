-- All tables of the database together; 9.1 to 9.5.
SELECT (ARRAY[
    'tables.autovacuum_count', 'tables.autoanalyze_count', 'tables.n_dead_tup', 'tables.n_tup_hot_upd'
])[n] AS name, (ARRAY[
    t.autovacuum::numeric, t.autoanalyze::numeric, t.dead::numeric, t.hot::numeric
])[n] AS value
FROM (
    SELECT sum(autovacuum_count) AS autovacuum, sum(autoanalyze_count) AS autoanalyze,
           sum(n_dead_tup) AS dead, sum(n_tup_hot_upd) AS hot
    FROM pg_stat_all_tables
) t
CROSS JOIN generate_series(1, 4) AS g (n)
