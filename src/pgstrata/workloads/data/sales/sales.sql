BEGIN;
CREATE TABLE sale (
    sale_id bigint NOT NULL,
    day_id int NOT NULL,
    store_id int NOT NULL,
    product_id int NOT NULL,
    customer_id int NOT NULL,
    promotion_id int NOT NULL,
    channel_id int NOT NULL,
    quantity int NOT NULL,
    price double precision NOT NULL
);
-- In order of days, as they come in.
INSERT INTO sale
SELECT n, 1 + (n - 1) * 3653 / (@scale@::bigint * 100000), sales_draw(k, 1, 200), sales_draw(k + 1, 1, 5000), sales_draw(k + 2, 1, 50000),
    sales_draw(k + 3, 1, 300), sales_draw(k + 4, 1, 6), sales_draw(k + 5, 1, 20), sales_draw(k + 6, 99, 50000) / 100.0
FROM (SELECT n, n * 8 + 100000000 AS k FROM generate_series(1, @scale@::bigint * 100000) AS n) AS sales;
COMMIT;
