-- Clause 2.5, as one call.
@key3@
\set w random(1, :scale)
\set d random(1, 10)
\set far random(1, 100)
\set cw case when :scale = 1 or :far > 15 then :w else (:w - 1 + random(1, greatest(1, :scale - 1))) % :scale + 1 end
\set cd case when :far > 15 then :d else random(1, 10) end
\set amount random(100, 500000)
\set named random(1, 100)
\set name ((random(0, 255) | random(0, 999)) + 209) % 1000
\set c @customer@
SELECT tpcc_payment(:w, :d, :cw, :cd, CASE WHEN :named <= 60 THEN tpcc_find_customer(:cw, :cd, tpcc_last_name(:name)) ELSE :c END, :amount::numeric / 100);
@think12@
