BEGIN;
-- repeat d from 1 to 10
WITH gone AS (DELETE FROM new_order WHERE no_w_id = :w AND no_d_id = @d@ AND no_o_id = (SELECT no_o_id FROM new_order WHERE no_w_id = :w AND no_d_id = @d@ ORDER BY no_o_id LIMIT 1) RETURNING no_o_id) SELECT coalesce(max(no_o_id), 0) AS o FROM gone \gset
\if :o > 0
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w AND o_d_id = @d@ AND o_id = :o RETURNING o_c_id AS c \gset
WITH done AS (UPDATE order_line SET ol_delivery_d = now() WHERE ol_w_id = :w AND ol_d_id = @d@ AND ol_o_id = :o RETURNING ol_amount) SELECT sum(ol_amount) AS amount FROM done \gset
UPDATE customer SET c_balance = c_balance + :amount::numeric, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = :w AND c_d_id = @d@ AND c_id = :c;
\endif
-- end of repeat
COMMIT;
@think5@
