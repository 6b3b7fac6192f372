-- All tables of the database together.
SELECT v.name, v.value
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
