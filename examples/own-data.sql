CREATE TABLE regions (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE orders (
    id int PRIMARY KEY,
    region int NOT NULL,
    status text NOT NULL,
    amount numeric(10, 2) NOT NULL
);
-- hashint8 gives the same values on all versions
INSERT INTO orders
SELECT n, 1 + (hashint8(n) & 3), CASE WHEN hashint8(n) % 50 = 0 THEN 'open' ELSE 'done' END, (hashint8(-n) & 65535) / 100.0
FROM generate_series(1, 300000) AS n;
