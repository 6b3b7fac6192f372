\set aid random(1, 100000 * :scale)
SELECT count(*) FROM generate_series(1, :extra);
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
