BEGIN;
CREATE TABLE region (region_id int NOT NULL, name text NOT NULL);
INSERT INTO region VALUES (0, 'Africa'), (1, 'America'), (2, 'Asia'), (3, 'Europe'), (4, 'Middle East');
CREATE TABLE nation (nation_id int NOT NULL, name text NOT NULL, region_id int NOT NULL);
INSERT INTO nation
SELECT n - 1, name, (n - 1) / 5
FROM unnest('{Algeria,Ethiopia,Kenya,Morocco,Mozambique,Argentina,Brazil,Canada,Peru,Mexico,China,India,Indonesia,Japan,Vietnam,France,Germany,Romania,Portugal,Poland,Egypt,Iran,Iraq,Jordan,Oman}'::text[])
    WITH ORDINALITY AS names (name, n);
CREATE TABLE supplier (
    supplier_id int NOT NULL,
    name text NOT NULL,
    street text NOT NULL,
    nation_id int NOT NULL,
    phone text NOT NULL,
    balance numeric(12, 2) NOT NULL,
    note text NOT NULL
);
INSERT INTO supplier
SELECT n, 'supplier ' || lpad(n::text, 9, '0'), trade_word(k) || ' ' || trade_draw(k + 1, 1, 999), nation, trade_phone(nation, k + 2),
    trade_draw(k + 4, -99999, 999999)::numeric / 100,
    trade_word(k + 5) || ' ' || trade_word(k + 6) || ' ' || trade_word(k + 7) || ' ' || trade_word(k + 8) || ' ' || trade_word(k + 9)
FROM (
    SELECT n, k, trade_draw(k + 10, 0, 24) AS nation
    FROM (SELECT n, n * 32::bigint + 2000000000000000 AS k FROM generate_series(1, @scale@ * 100) AS n) AS numbers
) AS suppliers
ORDER BY n;
CREATE TABLE part (
    part_id int NOT NULL,
    name text NOT NULL,
    maker text NOT NULL,
    brand text NOT NULL,
    kind text NOT NULL,
    size int NOT NULL,
    container text NOT NULL,
    price numeric(12, 2) NOT NULL,
    note text NOT NULL
);
INSERT INTO part
SELECT n, trade_colour(k) || ' ' || trade_colour(k + 1) || ' ' || trade_colour(k + 2) || ' ' || trade_colour(k + 3) || ' ' || trade_colour(k + 4),
    'maker ' || maker, 'brand ' || maker || trade_draw(k + 6, 1, 5),
    ('{standard,small,medium,large,economy,promotional}'::text[])[trade_draw(k + 7, 1, 6)]
        || ' ' || ('{anodised,brushed,burnished,plated,polished}'::text[])[trade_draw(k + 8, 1, 5)]
        || ' ' || ('{brass,copper,nickel,steel,tin}'::text[])[trade_draw(k + 9, 1, 5)],
    trade_draw(k + 10, 1, 50),
    ('{small,medium,large,jumbo,wrapped}'::text[])[trade_draw(k + 11, 1, 5)]
        || ' ' || ('{bag,box,can,case,drum,jar,pack,pouch}'::text[])[trade_draw(k + 12, 1, 8)],
    trade_price(n), trade_word(k + 13) || ' ' || trade_word(k + 14)
FROM (
    SELECT n, k, trade_draw(k + 5, 1, 5) AS maker
    FROM (SELECT n, n * 32::bigint + 4000000000000000 AS k FROM generate_series(1, @scale@ * 2000) AS n) AS numbers
) AS parts
ORDER BY n;
CREATE TABLE supply (
    part_id int NOT NULL,
    supplier_id int NOT NULL,
    available int NOT NULL,
    cost numeric(12, 2) NOT NULL,
    note text NOT NULL
);
INSERT INTO supply
SELECT n, trade_supplier(n, i, @scale@ * 100), trade_draw(k, 1, 9999), trade_draw(k + 1, 100, 100000)::numeric / 100,
    trade_word(k + 2) || ' ' || trade_word(k + 3) || ' ' || trade_word(k + 4) || ' ' || trade_word(k + 5) || ' ' || trade_word(k + 6)
        || ' ' || trade_word(k + 7) || ' ' || trade_word(k + 8) || ' ' || trade_word(k + 9) || ' ' || trade_word(k + 10)
        || ' ' || trade_word(k + 11) || ' ' || trade_word(k + 12) || ' ' || trade_word(k + 13)
FROM (
    SELECT n, i, (n * 4::bigint + i) * 32 + 5000000000000000 AS k
    FROM generate_series(1, @scale@ * 2000) AS n CROSS JOIN generate_series(0, 3) AS i
) AS supplies
ORDER BY n, i;
COMMIT;
