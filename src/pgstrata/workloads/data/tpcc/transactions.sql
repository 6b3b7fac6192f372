-- The five transactions as functions of the server, for loads in which no statement waits for the way to the client.

-- Clause 2.4. Items are taken in the order of their numbers, so that two orders never wait for each other in a circle.
CREATE FUNCTION tpcc_new_order(warehouse_id int, district_id int, customer_id int, items int[], warehouses int[], quantities int[])
RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    order_id int;
    rates record;
    local_tax numeric;
    line record;
    price numeric;
    stocked record;
    total numeric := 0;
BEGIN
    SELECT c_discount, w_tax INTO STRICT rates FROM customer JOIN warehouse ON w_id = c_w_id
    WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_id = customer_id;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = warehouse_id AND d_id = district_id
    RETURNING d_next_o_id - 1, d_tax INTO STRICT order_id, local_tax;
    INSERT INTO orders VALUES (order_id, district_id, warehouse_id, customer_id, now(), NULL, array_length(items, 1),
        (warehouse_id = ALL (warehouses))::int);
    INSERT INTO new_order VALUES (order_id, district_id, warehouse_id);
    FOR line IN
        SELECT item_id, supply_id, quantity, number
        FROM unnest(items, warehouses, quantities) WITH ORDINALITY AS lines (item_id, supply_id, quantity, number)
        ORDER BY supply_id, item_id
    LOOP
        SELECT i_price INTO price FROM item WHERE i_id = line.item_id;
        IF NOT FOUND THEN
            -- one order in a hundred names an item that does not exist
            RAISE EXCEPTION 'no such item' USING ERRCODE = 'TPC01';
        END IF;
        UPDATE stock SET
            s_quantity = CASE WHEN s_quantity >= line.quantity + 10 THEN s_quantity - line.quantity
                ELSE s_quantity - line.quantity + 91 END,
            s_ytd = s_ytd + line.quantity,
            s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + (line.supply_id <> warehouse_id)::int
        WHERE s_w_id = line.supply_id AND s_i_id = line.item_id
        RETURNING (ARRAY[s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08, s_dist_09,
            s_dist_10])[district_id] AS info INTO STRICT stocked;
        INSERT INTO order_line VALUES (order_id, district_id, warehouse_id, line.number, line.item_id, line.supply_id, NULL,
            line.quantity, line.quantity * price, stocked.info);
        total := total + line.quantity * price;
    END LOOP;
    RETURN total * (1 - rates.c_discount) * (1 + rates.w_tax + local_tax);
EXCEPTION WHEN SQLSTATE 'TPC01' THEN
    -- what was done is undone with the block; the transaction itself is a success, as the specification wants it
    RETURN NULL;
END
$$;

-- Clause 2.5. By last name it is the one in the middle, by first name.
CREATE FUNCTION tpcc_find_customer(warehouse_id int, district_id int, name text) RETURNS int STABLE LANGUAGE sql AS $$
    SELECT c_id FROM (
        SELECT c_id, row_number() OVER (ORDER BY c_first) AS place, count(*) OVER () AS number
        FROM customer WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_last = name
    ) AS namesakes
    WHERE place = (number + 1) / 2
$$;

CREATE FUNCTION tpcc_payment(warehouse_id int, district_id int, home_id int, home_district_id int, customer_id int, amount numeric)
RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    names record;
    paid record;
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = warehouse_id RETURNING w_name INTO STRICT names;
    UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = warehouse_id AND d_id = district_id
    RETURNING names.w_name || '    ' || d_name AS both_names INTO STRICT names;
    UPDATE customer SET
        c_balance = c_balance - amount,
        c_ytd_payment = c_ytd_payment + amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = CASE WHEN c_credit = 'BC' THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, district_id, warehouse_id, amount, c_data), 500)
            ELSE c_data END
    WHERE c_w_id = home_id AND c_d_id = home_district_id AND c_id = customer_id
    RETURNING c_balance INTO STRICT paid;
    INSERT INTO history VALUES (customer_id, home_district_id, home_id, district_id, warehouse_id, now(), amount, names.both_names);
    RETURN paid.c_balance;
END
$$;

-- Clause 2.6.
CREATE FUNCTION tpcc_order_status(warehouse_id int, district_id int, customer_id int) RETURNS bigint STABLE LANGUAGE plpgsql AS $$
DECLARE
    customer_row record;
    order_row record;
    lines bigint;
BEGIN
    SELECT c_balance, c_first, c_middle, c_last INTO STRICT customer_row FROM customer
    WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_id = customer_id;
    SELECT o_id, o_entry_d, o_carrier_id INTO order_row FROM orders
    WHERE o_w_id = warehouse_id AND o_d_id = district_id AND o_c_id = customer_id ORDER BY o_id DESC LIMIT 1;
    SELECT count(ol_i_id + ol_supply_w_id + ol_quantity) INTO lines FROM order_line
    WHERE ol_w_id = warehouse_id AND ol_d_id = district_id AND ol_o_id = order_row.o_id;
    RETURN lines;
END
$$;

-- Clause 2.7: the oldest new order of each district.
CREATE FUNCTION tpcc_delivery(warehouse_id int, carrier_id int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    order_id int;
    customer_id int;
    amount numeric;
    delivered int := 0;
BEGIN
    FOR district_id IN 1..10 LOOP
        DELETE FROM new_order WHERE no_w_id = warehouse_id AND no_d_id = district_id AND no_o_id = (
            SELECT no_o_id FROM new_order WHERE no_w_id = warehouse_id AND no_d_id = district_id ORDER BY no_o_id LIMIT 1
        ) RETURNING no_o_id INTO order_id;
        CONTINUE WHEN NOT FOUND;
        UPDATE orders SET o_carrier_id = carrier_id WHERE o_w_id = warehouse_id AND o_d_id = district_id AND o_id = order_id
        RETURNING o_c_id INTO STRICT customer_id;
        WITH done AS (
            UPDATE order_line SET ol_delivery_d = now()
            WHERE ol_w_id = warehouse_id AND ol_d_id = district_id AND ol_o_id = order_id RETURNING ol_amount
        ) SELECT sum(ol_amount) INTO amount FROM done;
        UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
        WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_id = customer_id;
        delivered := delivered + 1;
    END LOOP;
    RETURN delivered;
END
$$;

-- Clause 2.8: items of the last 20 orders of which there is little.
CREATE FUNCTION tpcc_stock_level(warehouse_id int, district_id int, few int) RETURNS bigint STABLE LANGUAGE plpgsql AS $$
DECLARE
    next_id int;
BEGIN
    SELECT d_next_o_id INTO STRICT next_id FROM district WHERE d_w_id = warehouse_id AND d_id = district_id;
    RETURN (
        SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = warehouse_id AND s_i_id = ol_i_id
        WHERE ol_w_id = warehouse_id AND ol_d_id = district_id AND ol_o_id >= next_id - 20 AND ol_o_id < next_id
            AND s_quantity < few
    );
END
$$;
