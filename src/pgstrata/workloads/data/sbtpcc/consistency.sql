-- Clause 3.3.2, conditions 1 to 4, of one set of tables of sysbench-tpcc: what must be true at any time, whatever was done
-- to the data. A row for each condition: found is the number of warehouses or districts that break it. A district without
-- new orders breaks none.
WITH of_districts AS (
    SELECT d_w_id, d_id, d_next_o_id, d_ytd FROM district@copy@
), of_orders AS (
    SELECT o_w_id, o_d_id, max(o_id) AS last, sum(o_ol_cnt) AS lines FROM orders@copy@ GROUP BY o_w_id, o_d_id
), of_new_orders AS (
    SELECT no_w_id, no_d_id, min(no_o_id) AS first, max(no_o_id) AS last, count(*) AS number FROM new_orders@copy@ GROUP BY no_w_id, no_d_id
), of_lines AS (
    SELECT ol_w_id, ol_d_id, count(*) AS number FROM order_line@copy@ GROUP BY ol_w_id, ol_d_id
), conditions (item, found) AS (
    SELECT 'condition 1: takings of warehouses are those of their districts', count(*)
    FROM warehouse@copy@ LEFT JOIN (SELECT d_w_id, sum(d_ytd) AS ytd FROM of_districts GROUP BY d_w_id) AS sums ON d_w_id = w_id
    WHERE w_ytd IS DISTINCT FROM ytd
    UNION ALL
    SELECT 'condition 2: the last order has the number before the next one', count(*)
    FROM of_districts
    LEFT JOIN of_orders ON (o_w_id, o_d_id) = (d_w_id, d_id)
    LEFT JOIN of_new_orders ON (no_w_id, no_d_id) = (d_w_id, d_id)
    WHERE of_orders.last IS DISTINCT FROM d_next_o_id - 1 OR of_new_orders.last <> d_next_o_id - 1
    UNION ALL
    SELECT 'condition 3: new orders are numbered without a gap', count(*)
    FROM of_new_orders WHERE last - first + 1 <> number
    UNION ALL
    SELECT 'condition 4: orders have as many lines as they say', count(*)
    FROM of_orders LEFT JOIN of_lines ON (ol_w_id, ol_d_id) = (o_w_id, o_d_id)
    WHERE lines IS DISTINCT FROM of_lines.number
)
SELECT item || ' (tables @copy@)' AS item, 0 AS expected, found, found = 0 AS ok FROM conditions
