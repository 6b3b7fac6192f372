-- A third of the customers never ordered anything. Total and status follow from the items.
BEGIN;
CREATE TABLE orders (
    order_id int NOT NULL,
    customer_id int NOT NULL,
    status char(1) NOT NULL,
    total numeric(14, 2) NOT NULL,
    ordered date NOT NULL,
    priority text NOT NULL,
    clerk text NOT NULL,
    note text NOT NULL
);
INSERT INTO orders
SELECT o, 1 + 3 * trade_draw(k + 2, 0, @scale@ * 500 - 1) + trade_draw(k + 3, 0, 1),
    CASE open WHEN 0 THEN 'F' WHEN items THEN 'O' ELSE 'P' END, total, trade_ordered(o),
    ('{1 urgent,2 high,3 medium,4 not given,5 low}'::text[])[trade_draw(k + 4, 1, 5)], 'clerk ' || trade_draw(k + 5, 1, @scale@ * 10),
    trade_word(k + 6) || ' ' || trade_word(k + 7) || ' ' || trade_word(k + 8) || ' ' || trade_word(k + 9) || ' ' || trade_word(k + 10)
FROM (
    SELECT order_id AS o, order_id * 32::bigint + 6000000000000000 AS k, count(*) AS items, count(CASE status WHEN 'O' THEN 1 END) AS open,
        sum(round(price * (1 - discount) * (1 + tax), 2)) AS total
    FROM item GROUP BY order_id
) AS all_orders
ORDER BY o;
COMMIT;
