BEGIN;
UPDATE warehouse SET w_ytd = w_ytd + :amount::numeric / 100 WHERE w_id = :w;
UPDATE district SET d_ytd = d_ytd + :amount::numeric / 100 WHERE d_w_id = :w AND d_id = :d;
\if :named <= 60
SELECT tpcc_find_customer(:cw, :cd, tpcc_last_name(:name)) AS c \gset
\endif
UPDATE customer SET c_balance = c_balance - :amount::numeric / 100, c_ytd_payment = c_ytd_payment + :amount::numeric / 100, c_payment_cnt = c_payment_cnt + 1, c_data = CASE WHEN c_credit = 'BC' THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, :d::int, :w::int, :amount::numeric / 100, c_data), 500) ELSE c_data END WHERE c_w_id = :cw AND c_d_id = :cd AND c_id = :c;
INSERT INTO history SELECT :c, :cd, :cw, :d, :w, now(), :amount::numeric / 100, w_name || '    ' || d_name FROM warehouse JOIN district ON d_w_id = w_id WHERE w_id = :w AND d_id = :d;
COMMIT;
@think12@
