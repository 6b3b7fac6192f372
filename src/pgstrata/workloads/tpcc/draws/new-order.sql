-- Clause 2.4: an order of 5 to 15 lines, one in a hundred of them from another warehouse.
@key18@
\set w random(1, :scale)
\set d random(1, 10)
\set c @customer@
\set lines random(5, 15)
\set wrong random(1, 100)
\set local 1
-- repeat n from 1 to 15
\set i@n@ case when @n@ = :lines and :wrong = 1 then 0 else @item@ end
\set q@n@ random(1, 10)
\set far random(1, 100)
\set s@n@ case when :scale = 1 or :far > 1 or @n@ > :lines then :w else (:w - 1 + random(1, greatest(1, :scale - 1))) % :scale + 1 end
\set local case when :s@n@ = :w then :local else 0 end
-- end of repeat
