-- Clause 2.4, as one call: the lines are drawn as those of the client's statements are.
@key18@
\set w random(1, :scale)
\set d random(1, 10)
\set c @customer@
\set lines random(5, 15)
\set wrong random(1, 100)
-- repeat n from 1 to 15
\set i@n@ case when @n@ = :lines and :wrong = 1 then 0 else @item@ end
\set q@n@ random(1, 10)
\set far random(1, 100)
\set s@n@ case when :scale = 1 or :far > 1 then :w else (:w - 1 + random(1, greatest(1, :scale - 1))) % :scale + 1 end
-- end of repeat
SELECT tpcc_new_order(:w, :d, :c, (ARRAY[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10, :i11, :i12, :i13, :i14, :i15]::int[])[1:(:lines)], (ARRAY[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8, :s9, :s10, :s11, :s12, :s13, :s14, :s15]::int[])[1:(:lines)], (ARRAY[:q1, :q2, :q3, :q4, :q5, :q6, :q7, :q8, :q9, :q10, :q11, :q12, :q13, :q14, :q15]::int[])[1:(:lines)]);
@think12@
