-- Warehouses with ten districts each, their customers, and a payment of each of these.
BEGIN;
CREATE TABLE warehouse (
    w_id int NOT NULL,
    w_name varchar(10) NOT NULL,
    w_street_1 varchar(20) NOT NULL,
    w_street_2 varchar(20) NOT NULL,
    w_city varchar(20) NOT NULL,
    w_state char(2) NOT NULL,
    w_zip char(9) NOT NULL,
    w_tax numeric(4, 4) NOT NULL,
    w_ytd numeric(12, 2) NOT NULL
);
INSERT INTO warehouse
SELECT w, tpcc_letters(k, 6, 10), tpcc_letters(k + 1, 10, 20), tpcc_letters(k + 2, 10, 20), tpcc_letters(k + 3, 10, 20),
    upper(tpcc_letters(k + 4, 2, 2)), to_char(tpcc_draw(k + 5, 0, 9999), 'FM0000') || '11111',
    tpcc_draw(k + 6, 0, 2000)::numeric / 10000, 300000
FROM (SELECT w, w * 8::bigint + 2000000000000000 AS k FROM generate_series(1, @scale@) AS w) AS warehouses;
CREATE TABLE district (
    d_id smallint NOT NULL,
    d_w_id int NOT NULL,
    d_name varchar(10) NOT NULL,
    d_street_1 varchar(20) NOT NULL,
    d_street_2 varchar(20) NOT NULL,
    d_city varchar(20) NOT NULL,
    d_state char(2) NOT NULL,
    d_zip char(9) NOT NULL,
    d_tax numeric(4, 4) NOT NULL,
    d_ytd numeric(12, 2) NOT NULL,
    d_next_o_id int NOT NULL
);
INSERT INTO district
SELECT d, w, tpcc_letters(k, 6, 10), tpcc_letters(k + 1, 10, 20), tpcc_letters(k + 2, 10, 20), tpcc_letters(k + 3, 10, 20),
    upper(tpcc_letters(k + 4, 2, 2)), to_char(tpcc_draw(k + 5, 0, 9999), 'FM0000') || '11111',
    tpcc_draw(k + 6, 0, 2000)::numeric / 10000, 30000, 3001
FROM (
    SELECT w, d, (w * 10 + d) * 8::bigint + 3000000000000000 AS k
    FROM generate_series(1, @scale@) AS w CROSS JOIN generate_series(1, 10) AS d
) AS districts;
CREATE TABLE customer (
    c_id int NOT NULL,
    c_d_id smallint NOT NULL,
    c_w_id int NOT NULL,
    c_first varchar(16) NOT NULL,
    c_middle char(2) NOT NULL,
    c_last varchar(16) NOT NULL,
    c_street_1 varchar(20) NOT NULL,
    c_street_2 varchar(20) NOT NULL,
    c_city varchar(20) NOT NULL,
    c_state char(2) NOT NULL,
    c_zip char(9) NOT NULL,
    c_phone char(16) NOT NULL,
    c_since timestamp NOT NULL,
    c_credit char(2) NOT NULL,
    c_credit_lim numeric(12, 2) NOT NULL,
    c_discount numeric(4, 4) NOT NULL,
    c_balance numeric(12, 2) NOT NULL,
    c_ytd_payment numeric(12, 2) NOT NULL,
    c_payment_cnt smallint NOT NULL,
    c_delivery_cnt smallint NOT NULL,
    c_data varchar(500) NOT NULL
);
-- The first 1000 of a district have one each of all last names; of the others some are frequent, NURand(255, 0, 999).
INSERT INTO customer
SELECT c, d, w, tpcc_letters(k, 8, 16), 'OE',
    tpcc_last_name(CASE WHEN c <= 1000 THEN c - 1 ELSE ((tpcc_draw(k + 1, 0, 255) | tpcc_draw(k + 2, 0, 999)) + 123) % 1000 END),
    tpcc_letters(k + 3, 10, 20), tpcc_letters(k + 4, 10, 20), tpcc_letters(k + 5, 10, 20), upper(tpcc_letters(k + 6, 2, 2)),
    to_char(tpcc_draw(k + 7, 0, 9999), 'FM0000') || '11111',
    to_char(tpcc_draw(k + 8, 0, 99999999), 'FM00000000') || to_char(tpcc_draw(k + 9, 0, 99999999), 'FM00000000'),
    timestamp '2024-01-01', CASE WHEN tpcc_draw(k + 10, 1, 10) = 1 THEN 'BC' ELSE 'GC' END, 50000,
    tpcc_draw(k + 11, 0, 5000)::numeric / 10000, -10, 10, 1, 0, tpcc_letters(k + 12, 300, 500)
FROM (
    SELECT w, d, c, ((w * 10 + d) * 3000::bigint + c) * 16 + 4000000000000000 AS k
    FROM generate_series(1, @scale@) AS w CROSS JOIN generate_series(1, 10) AS d CROSS JOIN generate_series(1, 3000) AS c
) AS customers;
CREATE TABLE history (
    h_c_id int NOT NULL,
    h_c_d_id smallint NOT NULL,
    h_c_w_id int NOT NULL,
    h_d_id smallint NOT NULL,
    h_w_id int NOT NULL,
    h_date timestamp NOT NULL,
    h_amount numeric(6, 2) NOT NULL,
    h_data varchar(24) NOT NULL
);
INSERT INTO history
SELECT c, d, w, d, w, timestamp '2024-01-01', 10, tpcc_letters(k, 12, 24)
FROM (
    SELECT w, d, c, (w * 10 + d) * 3000::bigint + c + 5000000000000000 AS k
    FROM generate_series(1, @scale@) AS w CROSS JOIN generate_series(1, 10) AS d CROSS JOIN generate_series(1, 3000) AS c
) AS customers;
COMMIT;
