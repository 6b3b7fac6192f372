-- Items, and what each warehouse has of them.
BEGIN;
CREATE TABLE item (
    i_id int NOT NULL,
    i_im_id int NOT NULL,
    i_name varchar(24) NOT NULL,
    i_price numeric(5, 2) NOT NULL,
    i_data varchar(50) NOT NULL
);
INSERT INTO item
SELECT i, tpcc_draw(k, 1, 10000), tpcc_letters(k + 1, 14, 24), tpcc_draw(k + 2, 100, 10000)::numeric / 100,
    CASE WHEN tpcc_draw(k + 4, 1, 10) = 1 THEN overlay(tpcc_letters(k + 3, 26, 50) PLACING 'ORIGINAL' FROM tpcc_draw(k + 5, 1, 18))
    ELSE tpcc_letters(k + 3, 26, 50) END
FROM (SELECT i, i::bigint * 8 AS k FROM generate_series(1, 100000) AS i) AS items;
CREATE TABLE stock (
    s_i_id int NOT NULL,
    s_w_id int NOT NULL,
    s_quantity smallint NOT NULL,
    s_dist_01 char(24) NOT NULL,
    s_dist_02 char(24) NOT NULL,
    s_dist_03 char(24) NOT NULL,
    s_dist_04 char(24) NOT NULL,
    s_dist_05 char(24) NOT NULL,
    s_dist_06 char(24) NOT NULL,
    s_dist_07 char(24) NOT NULL,
    s_dist_08 char(24) NOT NULL,
    s_dist_09 char(24) NOT NULL,
    s_dist_10 char(24) NOT NULL,
    s_ytd int NOT NULL,
    s_order_cnt smallint NOT NULL,
    s_remote_cnt smallint NOT NULL,
    s_data varchar(50) NOT NULL
);
INSERT INTO stock
SELECT i, w, tpcc_draw(k, 10, 100), tpcc_letters(k + 1, 24, 24), tpcc_letters(k + 2, 24, 24), tpcc_letters(k + 3, 24, 24),
    tpcc_letters(k + 4, 24, 24), tpcc_letters(k + 5, 24, 24), tpcc_letters(k + 6, 24, 24), tpcc_letters(k + 7, 24, 24),
    tpcc_letters(k + 8, 24, 24), tpcc_letters(k + 9, 24, 24), tpcc_letters(k + 10, 24, 24), 0, 0, 0,
    CASE WHEN tpcc_draw(k + 12, 1, 10) = 1 THEN overlay(tpcc_letters(k + 11, 26, 50) PLACING 'ORIGINAL' FROM tpcc_draw(k + 13, 1, 18))
    ELSE tpcc_letters(k + 11, 26, 50) END
FROM (
    SELECT w, i, (w * 100000::bigint + i) * 16 + 1000000000000000 AS k
    FROM generate_series(1, @scale@) AS w CROSS JOIN generate_series(1, 100000) AS i
) AS stocks;
COMMIT;
