-- The planner knows by them that each item has one order and one supply, whose two columns depend on each other.
ALTER TABLE nation ADD FOREIGN KEY (region_id) REFERENCES region;
ALTER TABLE supplier ADD FOREIGN KEY (nation_id) REFERENCES nation;
ALTER TABLE customer ADD FOREIGN KEY (nation_id) REFERENCES nation;
ALTER TABLE supply ADD FOREIGN KEY (part_id) REFERENCES part;
ALTER TABLE supply ADD FOREIGN KEY (supplier_id) REFERENCES supplier;
ALTER TABLE orders ADD FOREIGN KEY (customer_id) REFERENCES customer;
ALTER TABLE item ADD FOREIGN KEY (order_id) REFERENCES orders;
ALTER TABLE item ADD FOREIGN KEY (part_id, supplier_id) REFERENCES supply;
