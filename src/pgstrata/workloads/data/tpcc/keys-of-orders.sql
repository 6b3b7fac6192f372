ALTER TABLE orders ADD PRIMARY KEY (o_w_id, o_d_id, o_id);
CREATE UNIQUE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id);
ALTER TABLE new_order ADD PRIMARY KEY (no_w_id, no_d_id, no_o_id);
ALTER TABLE order_line ADD PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number);
