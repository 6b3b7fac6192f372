ALTER TABLE item ADD PRIMARY KEY (order_id, line);
CREATE INDEX item_by_part ON item (part_id, supplier_id);
CREATE INDEX item_by_shipping ON item (shipped);
