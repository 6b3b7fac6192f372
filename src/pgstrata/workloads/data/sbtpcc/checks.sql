-- Cardinalities of fresh tables of sysbench-tpcc, the same as those of clause 4.3.3.1, in one set of tables.
WITH checks (item, expected, found) AS (
    SELECT 'rows of warehouse@copy@', @scale@::bigint, count(*) FROM warehouse@copy@
    UNION ALL SELECT 'rows of district@copy@', @scale@::bigint * 10, count(*) FROM district@copy@
    UNION ALL SELECT 'rows of customer@copy@', @scale@::bigint * 30000, count(*) FROM customer@copy@
    UNION ALL SELECT 'rows of history@copy@', @scale@::bigint * 30000, count(*) FROM history@copy@
    UNION ALL SELECT 'rows of orders@copy@', @scale@::bigint * 30000, count(*) FROM orders@copy@
    UNION ALL SELECT 'rows of new_orders@copy@', @scale@::bigint * 9000, count(*) FROM new_orders@copy@
    UNION ALL SELECT 'rows of item@copy@', 100000, count(*) FROM item@copy@
    UNION ALL SELECT 'rows of stock@copy@', @scale@::bigint * 100000, count(*) FROM stock@copy@
)
SELECT item, expected, found, expected IS NOT DISTINCT FROM found AS ok FROM checks
