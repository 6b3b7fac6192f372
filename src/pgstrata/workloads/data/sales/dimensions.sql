BEGIN;
CREATE TABLE day (day_id int NOT NULL, date date NOT NULL, year smallint NOT NULL, quarter smallint NOT NULL, month smallint NOT NULL,
    weekday smallint NOT NULL);
INSERT INTO day
SELECT n, date, extract(year FROM date), extract(quarter FROM date), extract(month FROM date), extract(isodow FROM date)
FROM (SELECT n, date '2015-01-01' + (n - 1) AS date FROM generate_series(1, 3653) AS n) AS days;
CREATE TABLE store (store_id int NOT NULL, name text NOT NULL, region text NOT NULL, square_metres int NOT NULL);
INSERT INTO store
SELECT n, 'store ' || n, 'region ' || sales_draw(n * 8::bigint, 1, 12), sales_draw(n * 8::bigint + 1, 80, 4000)
FROM generate_series(1, 200) AS n;
CREATE TABLE supplier (supplier_id int NOT NULL, name text NOT NULL, country text NOT NULL);
INSERT INTO supplier
SELECT n, 'supplier ' || n, 'country ' || sales_draw(n * 8::bigint + 1000000, 1, 40) FROM generate_series(1, 400) AS n;
CREATE TABLE product (product_id int NOT NULL, name text NOT NULL, category text NOT NULL, supplier_id int NOT NULL,
    list_price double precision NOT NULL);
INSERT INTO product
SELECT n, 'product ' || n, 'category ' || sales_draw(n * 8::bigint + 2000000, 1, 50), sales_draw(n * 8::bigint + 2000001, 1, 400),
    sales_draw(n * 8::bigint + 2000002, 99, 50000) / 100.0
FROM generate_series(1, 5000) AS n;
CREATE TABLE customer (customer_id int NOT NULL, name text NOT NULL, segment text NOT NULL, born smallint NOT NULL, city text NOT NULL);
INSERT INTO customer
SELECT n, 'customer ' || n, 'segment ' || sales_draw(n * 8::bigint + 3000000, 1, 6), sales_draw(n * 8::bigint + 3000001, 1935, 2006),
    'city ' || sales_draw(n * 8::bigint + 3000002, 1, 900)
FROM generate_series(1, 50000) AS n;
CREATE TABLE promotion (promotion_id int NOT NULL, kind text NOT NULL, reduction double precision NOT NULL);
INSERT INTO promotion
SELECT n, 'kind ' || sales_draw(n * 8::bigint + 4000000, 1, 9), sales_draw(n * 8::bigint + 4000001, 0, 30) / 100.0
FROM generate_series(1, 300) AS n;
CREATE TABLE channel (channel_id int NOT NULL, name text NOT NULL);
INSERT INTO channel SELECT n, 'channel ' || n FROM generate_series(1, 6) AS n;
COMMIT;
