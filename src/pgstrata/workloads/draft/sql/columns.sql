-- Columns of tables that statements name, with the ends of their statistics where they hold numbers. Only these ends
-- leave the server. Rows that are given: a number, a name for to_regclass.
SELECT t.given, n.nspname AS schema, c.relname AS "table", a.attname AS "column",
       pg_catalog.format_type(a.atttypid, a.atttypmod) AS type,
       y.typcategory = 'N' AND y.typtype = 'b' AS numeric,
       a.atttypid IN (20, 21, 23, 26) AS whole,
       s.n_distinct AS distinct, s.low, s.high,
       EXISTS (SELECT FROM pg_catalog.pg_index i
               WHERE i.indrelid = c.oid AND i.indisunique AND a.attnum = ANY (i.indkey::int2[])) AS "unique"
FROM (VALUES @tables@) AS t (given, known)
JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(t.known) AND c.relkind IN ('r', 'p', 'm', 'f', 'v')
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_type y ON y.oid = a.atttypid
LEFT JOIN LATERAL (
    SELECT p.n_distinct,
           (SELECT pg_catalog.min(v) FROM pg_catalog.unnest(p.ends) AS v) AS low,
           (SELECT pg_catalog.max(v) FROM pg_catalog.unnest(p.ends) AS v) AS high
    FROM (SELECT q.n_distinct,
                 CASE WHEN a.atttypid IN (20, 21, 23, 26, 700, 701, 1700)
                      THEN pg_catalog.array_cat(q.histogram_bounds::text::float8[], q.most_common_vals::text::float8[])
                 END AS ends
          FROM pg_catalog.pg_stats q
          WHERE q.schemaname = n.nspname AND q.tablename = c.relname AND q.attname = a.attname
          ORDER BY q.inherited DESC LIMIT 1) AS p
) AS s ON true
