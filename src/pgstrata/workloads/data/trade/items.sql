-- One to seven items of each order. All dates of an item follow from that of its order; what was shipped before the middle of June 1995 is settled.
BEGIN;
CREATE TABLE item (
    order_id int NOT NULL,
    line int NOT NULL,
    part_id int NOT NULL,
    supplier_id int NOT NULL,
    quantity numeric(12, 2) NOT NULL,
    price numeric(12, 2) NOT NULL,
    discount numeric(12, 2) NOT NULL,
    tax numeric(12, 2) NOT NULL,
    returned char(1) NOT NULL,
    status char(1) NOT NULL,
    shipped date NOT NULL,
    committed date NOT NULL,
    received date NOT NULL,
    instructions text NOT NULL,
    mode text NOT NULL,
    note text NOT NULL
);
INSERT INTO item
SELECT o, line, part, trade_supplier(part, trade_draw(k + 1, 0, 3), @scale@ * 100), quantity, quantity * trade_price(part),
    trade_draw(k + 3, 0, 10)::numeric / 100, trade_draw(k + 4, 0, 8)::numeric / 100,
    CASE WHEN shipped + shipping > date '1995-06-17' THEN 'N' WHEN trade_draw(k + 5, 0, 1) = 0 THEN 'R' ELSE 'A' END,
    CASE WHEN shipped > date '1995-06-17' THEN 'O' ELSE 'F' END,
    shipped, trade_ordered(o) + trade_draw(k + 7, 30, 90), shipped + shipping,
    ('{collect payment,deliver in person,no signature,take back}'::text[])[trade_draw(k + 9, 1, 4)],
    ('{air,air express,mail,pick-up,rail,ship,truck}'::text[])[trade_draw(k + 10, 1, 7)],
    trade_word(k + 11) || ' ' || trade_word(k + 12) || ' ' || trade_word(k + 13) || ' ' || trade_word(k + 14)
FROM (
    SELECT o, line, k, trade_draw(k, 1, @scale@ * 2000) AS part, trade_draw(k + 2, 1, 50) AS quantity,
        trade_ordered(o) + trade_draw(k + 6, 1, 121) AS shipped, trade_draw(k + 8, 1, 30) AS shipping
    FROM (
        SELECT o, line, (o * 8::bigint + line) * 32 + 7000000000000000 AS k
        FROM generate_series(1, @scale@ * 15000) AS o CROSS JOIN LATERAL generate_series(1, trade_lines(o)) AS line
    ) AS numbers
) AS items;
COMMIT;
