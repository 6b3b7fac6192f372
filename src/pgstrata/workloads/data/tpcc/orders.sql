-- 3000 orders of each district, one of each customer in random order; the last 900 are not delivered yet.
BEGIN;
CREATE TABLE orders (
    o_id int NOT NULL,
    o_d_id smallint NOT NULL,
    o_w_id int NOT NULL,
    o_c_id int NOT NULL,
    o_entry_d timestamp NOT NULL,
    o_carrier_id smallint,
    o_ol_cnt smallint NOT NULL,
    o_all_local smallint NOT NULL
);
INSERT INTO orders
SELECT o, d, w, c, timestamp '2024-01-01', CASE WHEN o <= 2100 THEN tpcc_draw(k, 1, 10) END, tpcc_draw(k + 1, 5, 15), 1
FROM (
    SELECT w, d, c, o, ((w * 10 + d) * 3000::bigint + o) * 4 + 6000000000000000 AS k
    FROM generate_series(1, @scale@) AS w CROSS JOIN generate_series(1, 10) AS d CROSS JOIN LATERAL (
        SELECT c, row_number() OVER (ORDER BY hashint8(((w * 10 + d) * 3000::bigint + c) * 4 + 6000000000000002), c)::int AS o
        FROM generate_series(1, 3000) AS c
    ) AS drawn
) AS all_orders
ORDER BY w, d, o;
CREATE TABLE new_order (
    no_o_id int NOT NULL,
    no_d_id smallint NOT NULL,
    no_w_id int NOT NULL
);
INSERT INTO new_order
SELECT o, d, w
FROM generate_series(1, @scale@) AS w CROSS JOIN generate_series(1, 10) AS d CROSS JOIN generate_series(2101, 3000) AS o;
CREATE TABLE order_line (
    ol_o_id int NOT NULL,
    ol_d_id smallint NOT NULL,
    ol_w_id int NOT NULL,
    ol_number smallint NOT NULL,
    ol_i_id int NOT NULL,
    ol_supply_w_id int NOT NULL,
    ol_delivery_d timestamp,
    ol_quantity smallint NOT NULL,
    ol_amount numeric(6, 2) NOT NULL,
    ol_dist_info char(24) NOT NULL
);
INSERT INTO order_line
SELECT o, d, w, line, tpcc_draw(k, 1, 100000), w, CASE WHEN o <= 2100 THEN timestamp '2024-01-01' END, 5,
    CASE WHEN o <= 2100 THEN 0 ELSE tpcc_draw(k + 1, 1, 999999)::numeric / 100 END, tpcc_letters(k + 2, 24, 24)
FROM (
    SELECT w, d, o, line, (((w * 10 + d) * 3000::bigint + o) * 16 + line) * 4 + 7000000000000000 AS k
    FROM generate_series(1, @scale@) AS w CROSS JOIN generate_series(1, 10) AS d CROSS JOIN generate_series(1, 3000) AS o
    CROSS JOIN LATERAL generate_series(1, tpcc_draw(((w * 10 + d) * 3000::bigint + o) * 4 + 6000000000000001, 5, 15)) AS line
) AS lines;
COMMIT;
