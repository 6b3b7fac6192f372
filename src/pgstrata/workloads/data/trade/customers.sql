BEGIN;
CREATE TABLE customer (
    customer_id int NOT NULL,
    name text NOT NULL,
    street text NOT NULL,
    nation_id int NOT NULL,
    phone text NOT NULL,
    balance numeric(12, 2) NOT NULL,
    segment text NOT NULL,
    note text NOT NULL
);
INSERT INTO customer
SELECT n, 'customer ' || lpad(n::text, 9, '0'), trade_word(k) || ' ' || trade_draw(k + 1, 1, 999), nation, trade_phone(nation, k + 2),
    trade_draw(k + 4, -99999, 999999)::numeric / 100, ('{buildings,cars,furniture,households,machines}'::text[])[trade_draw(k + 5, 1, 5)],
    trade_word(k + 6) || ' ' || trade_word(k + 7) || ' ' || trade_word(k + 8) || ' ' || trade_word(k + 9)
        || ' ' || trade_word(k + 11) || ' ' || trade_word(k + 12) || ' ' || trade_word(k + 13)
FROM (
    SELECT n, k, trade_draw(k + 10, 0, 24) AS nation
    FROM (SELECT n, n * 32::bigint + 3000000000000000 AS k FROM generate_series(1, @scale@ * 1500) AS n) AS numbers
) AS customers
ORDER BY n;
COMMIT;
