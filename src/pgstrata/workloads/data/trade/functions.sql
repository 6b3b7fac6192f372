-- A whole number from lowest to highest for a row and column, all as likely, the same whenever it is asked for.
CREATE FUNCTION trade_draw(key bigint, lowest int, highest int) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS $$
    SELECT lowest + (hashint8(key) & 2147483647) % (highest - lowest + 1)
$$;

CREATE FUNCTION trade_word(key bigint) RETURNS text IMMUTABLE STRICT LANGUAGE sql AS $$
    SELECT ('{amber,brisk,calm,careful,certain,complaints,crates,customer,delayed,distant,early,fragile,goods,heavy,invoices,late,letters,light,pallets,parcels,plain,prompt,quiet,regular,requests,sealed,special,steady,urgent,usual,weekly,wide}'::text[])[1 + (hashint8(key) & 31)]
$$;

CREATE FUNCTION trade_colour(key bigint) RETURNS text IMMUTABLE STRICT LANGUAGE sql AS $$
    SELECT ('{almond,azure,beige,black,blue,brown,coral,cream,cyan,gold,green,grey,indigo,ivory,khaki,lavender,lemon,lime,magenta,maroon,mint,navy,olive,orange,orchid,peach,pink,plum,purple,red,rose,salmon,sand,sienna,silver,tan,teal,violet,white,yellow}'::text[])[trade_draw(key, 1, 40)]
$$;

-- Country code, which follows from the nation, and a number.
CREATE FUNCTION trade_phone(nation int, key bigint) RETURNS text IMMUTABLE STRICT LANGUAGE sql AS $$
    SELECT (10 + nation) || '-' || trade_draw(key, 100, 999) || '-' || trade_draw(key + 1, 1000, 9999)
$$;

CREATE FUNCTION trade_price(part int) RETURNS numeric IMMUTABLE STRICT LANGUAGE sql AS $$
    SELECT trade_draw(part * 32::bigint + 4000000000000015, 90000, 210000)::numeric / 100
$$;

-- The suppliers of a part are four, told apart by a number from 0 to 3 (clause 4.2.3).
CREATE FUNCTION trade_supplier(part int, which int, suppliers int) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS $$
    SELECT 1 + (part + which * (suppliers / 4 + (part - 1) / suppliers)) % suppliers
$$;

CREATE FUNCTION trade_ordered(order_id int) RETURNS date IMMUTABLE STRICT LANGUAGE sql AS $$
    SELECT date '1992-01-01' + trade_draw(order_id * 32::bigint + 6000000000000000, 0, 2405)
$$;

CREATE FUNCTION trade_lines(order_id int) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS $$
    SELECT trade_draw(order_id * 32::bigint + 6000000000000001, 1, 7)
$$;
