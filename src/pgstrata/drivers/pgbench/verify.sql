-- One row per check of data that pgbench -i has just made. Only what no script of an experiment may change is checked.
WITH accounts AS (
    SELECT count(*) AS rows, min(aid)::bigint AS lowest, max(aid)::bigint AS highest FROM pgbench_accounts
), checks (item, expected, found) AS (
    SELECT 'rows of pgbench_accounts', @scale@::bigint * 100000, rows FROM accounts
    UNION ALL SELECT 'lowest aid', 1, lowest FROM accounts
    UNION ALL SELECT 'highest aid', @scale@::bigint * 100000, highest FROM accounts
    UNION ALL SELECT 'rows of pgbench_tellers', @scale@::bigint * 10, count(*) FROM pgbench_tellers
    UNION ALL SELECT 'rows of pgbench_branches', @scale@::bigint, count(*) FROM pgbench_branches
)
SELECT item, expected, found, expected IS NOT DISTINCT FROM found AS ok FROM checks
