-- Sums over drawn columns are those of hashint8, which is the same on all versions: a damaged row changes them.
WITH lines AS (
    SELECT (o * 8::bigint + line) * 32 + 7000000000000000 AS k
    FROM generate_series(1, @scale@ * 15000) AS o CROSS JOIN LATERAL generate_series(1, trade_lines(o)) AS line
),
checks (item, expected, found) AS (
    SELECT 'rows of region', 5, count(*)::numeric FROM region
    UNION ALL SELECT 'rows of nation', 25, count(*) FROM nation
    UNION ALL SELECT 'rows of supplier', @scale@ * 100, count(*) FROM supplier
    UNION ALL SELECT 'rows of customer', @scale@ * 1500, count(*) FROM customer
    UNION ALL SELECT 'rows of part', @scale@ * 2000, count(*) FROM part
    UNION ALL SELECT 'rows of supply', @scale@ * 8000, count(*) FROM supply
    UNION ALL SELECT 'rows of orders', @scale@ * 15000, count(*) FROM orders
    UNION ALL SELECT 'rows of item', (SELECT count(*) FROM lines), count(*) FROM item
    UNION ALL SELECT 'quantities of all items', (SELECT sum(trade_draw(k + 2, 1, 50)) FROM lines), sum(quantity) FROM item
    UNION ALL SELECT 'discounts of all items', (SELECT sum(trade_draw(k + 3, 0, 10))::numeric / 100 FROM lines), sum(discount) FROM item
    UNION ALL SELECT 'days until all items were received', (SELECT sum(trade_draw(k + 8, 1, 30)) FROM lines), sum(received - shipped) FROM item
    UNION ALL SELECT 'prices of all items', (SELECT sum(quantity * trade_price(part_id)) FROM item), sum(price) FROM item
    UNION ALL SELECT 'totals of all orders', (SELECT sum(round(price * (1 - discount) * (1 + tax), 2)) FROM item), sum(total) FROM orders
    UNION ALL SELECT 'customers of all orders', (
        SELECT sum(1 + 3 * trade_draw(o * 32::bigint + 6000000000000002, 0, @scale@ * 500 - 1)::bigint + trade_draw(o * 32::bigint + 6000000000000003, 0, 1))
        FROM generate_series(1, @scale@ * 15000) AS o
    ), sum(customer_id) FROM orders
    UNION ALL SELECT 'costs of all supplies', (
        SELECT sum(trade_draw((n * 4::bigint + i) * 32 + 5000000000000001, 100, 100000)::numeric / 100)
        FROM generate_series(1, @scale@ * 2000) AS n CROSS JOIN generate_series(0, 3) AS i
    ), sum(cost) FROM supply
)
SELECT item, expected, found, expected IS NOT DISTINCT FROM found AS ok FROM checks
