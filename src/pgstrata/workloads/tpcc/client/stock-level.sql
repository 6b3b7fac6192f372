BEGIN;
SELECT d_next_o_id AS next FROM district WHERE d_w_id = :w AND d_id = :d \gset
SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = :w AND s_i_id = ol_i_id WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id >= :next - 20 AND ol_o_id < :next AND s_quantity < :few;
COMMIT;
@think5@
