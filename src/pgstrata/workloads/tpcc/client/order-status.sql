BEGIN;
\if :named <= 60
SELECT tpcc_find_customer(:w, :d, tpcc_last_name(:name)) AS c \gset
\endif
SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
SELECT max(o_id) AS o FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c \gset
SELECT o_entry_d, o_carrier_id FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_id = :o;
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o;
COMMIT;
@think10@
