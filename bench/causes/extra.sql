\set aid random(1, 100000 * :scale)
SELECT abalance + (SELECT count(*) FROM generate_series(1, :extra)) FROM pgbench_accounts WHERE aid = :aid;
