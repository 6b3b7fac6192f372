CREATE TABLE hot (id integer PRIMARY KEY, n integer NOT NULL) WITH (fillfactor = 50);
INSERT INTO hot SELECT i, 0 FROM generate_series(1, 1000) i;
VACUUM ANALYZE hot;
