-- Clause 2.6, as one call.
@key2@
\set w random(1, :scale)
\set d random(1, 10)
\set named random(1, 100)
\set name ((random(0, 255) | random(0, 999)) + 209) % 1000
\set c @customer@
SELECT tpcc_order_status(:w, :d, CASE WHEN :named <= 60 THEN tpcc_find_customer(:w, :d, tpcc_last_name(:name)) ELSE :c END);
@think10@
