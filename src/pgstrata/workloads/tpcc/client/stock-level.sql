-- Clause 2.8: items of a district's last 20 orders of which there is little.
@key2@
\set w random(1, :scale)
\set d random(1, 10)
\set few random(10, 20)
BEGIN;
SELECT d_next_o_id AS next FROM district WHERE d_w_id = :w AND d_id = :d \gset
SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = :w AND s_i_id = ol_i_id WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id >= :next - 20 AND ol_o_id < :next AND s_quantity < :few;
COMMIT;
@think5@
