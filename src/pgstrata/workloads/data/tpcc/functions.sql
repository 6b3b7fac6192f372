-- Functions that draw values. A value depends on nothing but its row and its column, so that data are the same
-- whenever and wherever they are made, and by however many sessions: random() is another one since PostgreSQL 15.

-- A whole number from lowest to highest, all as likely. Rows of all tables have keys of their own.
CREATE FUNCTION tpcc_draw(key bigint, lowest int, highest int) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS $$
    SELECT lowest + (hashint8(key) & 2147483647) % (highest - lowest + 1)
$$;

-- 720 letters and digits, in which strings are cut out. A constant in the function that cuts.
DO $$
DECLARE
    pool text := (SELECT string_agg(md5(n::text), '' ORDER BY n) FROM generate_series(1, 23) n);
BEGIN
    pool := substr(translate(pool, '0123456789', 'ghijklmnop'), 1, 720);
    EXECUTE format($make$
        CREATE FUNCTION tpcc_letters(key bigint, shortest int, longest int) RETURNS text IMMUTABLE STRICT LANGUAGE sql AS $body$
            SELECT substr(%L, 1 + (hashint8(key) & 255) %% 200,
                shortest + (hashint8(key) & 268435455) / 256 %% (longest - shortest + 1))
        $body$
    $make$, pool);
END
$$;

-- Clause 4.3.2.3: three syllables for the digits of a number from 0 to 999.
CREATE FUNCTION tpcc_last_name(number int) RETURNS text IMMUTABLE STRICT LANGUAGE sql AS $$
    SELECT names[number / 100 + 1] || names[number / 10 % 10 + 1] || names[number % 10 + 1]
    FROM (SELECT ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING']) AS syllables (names)
$$;
