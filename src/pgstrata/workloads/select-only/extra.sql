-- select-only with a known amount of further work in the server: a digest of :extra_work bytes in the same statement.
\set aid @account@
SELECT abalance, md5(repeat('x', :extra_work)) FROM pgbench_accounts WHERE aid = :aid;
