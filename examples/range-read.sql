\set first random(1, 100000 * :scale - :width)
\set last :first + :width
SELECT count(*), sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN :first AND :last;
