-- select-only with a known amount of further work in the server: a count to :extra_work in the same statement.
\set aid random(1, 100000 * :scale)
SELECT abalance, (SELECT count(*) FROM generate_series(1, :extra_work)) FROM pgbench_accounts WHERE aid = :aid;
