-- A whole number from lowest to highest for a row and column, all as likely, the same whenever it is asked for.
CREATE FUNCTION sales_draw(key bigint, lowest int, highest int) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS $$
    SELECT lowest + (hashint8(key) & 2147483647) % (highest - lowest + 1)
$$;
