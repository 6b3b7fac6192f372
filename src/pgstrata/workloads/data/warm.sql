-- Reads relations into shared_buffers. Those that an experiment's own script has removed are left out.
SELECT pg_catalog.current_setting('server_version_num')::int >= 90600 AS pgstrata_recent,
       pg_catalog.current_setting('server_version_num')::int >= 90400 AS pgstrata_prewarms \gset
\if :pgstrata_recent
DO $$
DECLARE
    wanted text[] := @relations@;
    name text;
    key text;
    prewarm text;
    ignored bigint;
BEGIN
    SELECT format('SELECT %I.pg_prewarm($1)', n.nspname) INTO prewarm
    FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'pg_prewarm';

    -- What set-up scripts have made, and everything else that is no catalogue.
    SELECT wanted || coalesce(array_agg(c.oid::regclass::text ORDER BY c.oid), '{}') INTO wanted
    FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'i', 'm') AND s.nspname !~ '^pg_' AND s.nspname <> 'information_schema'
        AND NOT EXISTS (SELECT 1 FROM unnest(wanted) AS w (known) WHERE to_regclass(known) = c.oid);

    -- For the way without the extension: one process that reads table and key together.
    PERFORM set_config('enable_seqscan', 'off', true);
    PERFORM set_config('enable_bitmapscan', 'off', true);
    PERFORM set_config('max_parallel_workers_per_gather', '0', true);

    FOREACH name IN ARRAY wanted LOOP
        CONTINUE WHEN to_regclass(name) IS NULL;
        IF prewarm IS NOT NULL THEN
            EXECUTE prewarm INTO ignored USING to_regclass(name);
            CONTINUE;
        END IF;
        CONTINUE WHEN (SELECT relkind FROM pg_class WHERE oid = to_regclass(name)) <> 'r';
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY k.place) INTO key
        FROM pg_index i
        CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE i.indrelid = to_regclass(name) AND i.indisprimary;
        -- OFFSET 0 keeps the order, and with it the scan of the index; the whole row is counted, so the table is read.
        EXECUTE format('SELECT count(t.*) FROM (SELECT * FROM %s %s OFFSET 0) t',
                       to_regclass(name), coalesce('ORDER BY ' || key, '')) INTO ignored;
    END LOOP;
END
$$;
\else
-- 8.3 to 9.5: statements that psql composes and gives back to the server, in the words that all of these know.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
\set pgstrata_schema ''
\if :pgstrata_prewarms
SELECT coalesce(min(quote_ident(n.nspname)), '') AS pgstrata_schema
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_prewarm' \gset
\endif
SELECT CASE WHEN :'pgstrata_schema' <> ''
            THEN 'SELECT ' || :'pgstrata_schema' || '.pg_prewarm(' || c.oid::text || '::oid::regclass)'
            ELSE 'SELECT count(t.*) FROM (SELECT * FROM ' || c.oid::regclass::text || coalesce(' ORDER BY ' || nullif(
                array_to_string(ARRAY(
                    SELECT quote_ident(a.attname)
                    FROM pg_index i
                    CROSS JOIN generate_series(0, 31) AS k (place)
                    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k.place]
                    WHERE i.indrelid = c.oid AND i.indisprimary AND k.place < i.indnatts
                    ORDER BY k.place
                ), ', '), ''), '') || ' OFFSET 0) t' END
FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
WHERE (c.relkind = 'r' OR (:'pgstrata_schema' <> '' AND c.relkind IN ('i', 'm')))
    AND s.nspname !~ '^pg_' AND s.nspname <> 'information_schema'
ORDER BY c.oid \gexec
\endif
