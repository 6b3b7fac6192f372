-- Cardinalities of freshly made data (clause 1.2.1 and 4.3.3.1), and sums that a damaged row changes.
WITH checks (item, expected, found) AS (
    SELECT 'rows of warehouse', @scale@::bigint, count(*) FROM warehouse
    UNION ALL SELECT 'rows of district', @scale@::bigint * 10, count(*) FROM district
    UNION ALL SELECT 'rows of customer', @scale@::bigint * 30000, count(*) FROM customer
    UNION ALL SELECT 'rows of history', @scale@::bigint * 30000, count(*) FROM history
    UNION ALL SELECT 'rows of orders', @scale@::bigint * 30000, count(*) FROM orders
    UNION ALL SELECT 'rows of new_order', @scale@::bigint * 9000, count(*) FROM new_order
    UNION ALL SELECT 'rows of item', 100000, count(*) FROM item
    UNION ALL SELECT 'rows of stock', @scale@::bigint * 100000, count(*) FROM stock
    UNION ALL SELECT 'customers with an order each', @scale@::bigint * 30000, count(DISTINCT (o_w_id, o_d_id, o_c_id)) FROM orders
    UNION ALL SELECT 'balance of all customers', @scale@::bigint * -300000, sum(c_balance)::bigint FROM customer
    UNION ALL SELECT 'payments in history', @scale@::bigint * 300000, sum(h_amount)::bigint FROM history
)
SELECT item, expected, found, expected IS NOT DISTINCT FROM found AS ok FROM checks
