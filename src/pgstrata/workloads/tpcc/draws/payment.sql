-- Clause 2.5: six in ten customers are found by their last name, 15 in a hundred are of another warehouse.
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
