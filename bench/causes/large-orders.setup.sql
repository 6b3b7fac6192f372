CREATE TABLE orders (id integer PRIMARY KEY, customer integer NOT NULL, amount integer NOT NULL);
INSERT INTO orders SELECT i, i % 5000, i % 97 FROM generate_series(1, 400000) i;
VACUUM ANALYZE orders;
