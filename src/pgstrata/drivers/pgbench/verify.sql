-- One row per check of data that pgbench -i has just made. Only what no script of an experiment may change is checked.
-- Without WITH, which came with 8.4.
SELECT item, expected, found, expected IS NOT DISTINCT FROM found AS ok FROM (
    SELECT (ARRAY['rows of pgbench_accounts', 'lowest aid', 'highest aid'])[n] AS item,
           (ARRAY[@scale@::bigint * 100000, 1, @scale@::bigint * 100000])[n] AS expected,
           (ARRAY[rows, lowest, highest])[n] AS found
    FROM (
        SELECT count(*) AS rows, min(aid)::bigint AS lowest, max(aid)::bigint AS highest FROM pgbench_accounts
    ) AS accounts
    CROSS JOIN generate_series(1, 3) AS g (n)
    UNION ALL SELECT 'rows of pgbench_tellers', @scale@::bigint * 10, count(*) FROM pgbench_tellers
    UNION ALL SELECT 'rows of pgbench_branches', @scale@::bigint, count(*) FROM pgbench_branches
) AS checks
