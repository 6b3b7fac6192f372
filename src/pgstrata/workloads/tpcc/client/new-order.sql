BEGIN;
SELECT c_discount, w_tax FROM customer JOIN warehouse ON w_id = c_w_id WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c \gset
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w AND d_id = :d RETURNING d_next_o_id - 1 AS o, d_tax AS tax \gset
INSERT INTO orders VALUES (:o, :d, :w, :c, now(), NULL, :lines, :local);
INSERT INTO new_order VALUES (:o, :d, :w);
-- repeat n from 1 to 15
\if :lines > @n@ or (:lines = @n@ and :wrong > 1)
SELECT i_price AS price FROM item WHERE i_id = :i@n@ \gset
UPDATE stock SET s_quantity = CASE WHEN s_quantity >= :q@n@ + 10 THEN s_quantity - :q@n@ ELSE s_quantity - :q@n@ + 91 END, s_ytd = s_ytd + :q@n@, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + (:s@n@ <> :w)::int WHERE s_w_id = :s@n@ AND s_i_id = :i@n@;
INSERT INTO order_line SELECT :o, :d, :w, @n@, :i@n@, :s@n@, NULL, :q@n@, :q@n@ * :price::numeric, (ARRAY[s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10])[:d] FROM stock WHERE s_w_id = :s@n@ AND s_i_id = :i@n@;
\endif
-- end of repeat
\if :wrong = 1
SELECT i_price FROM item WHERE i_id = 0;
ROLLBACK;
\else
COMMIT;
\endif
@think12@
