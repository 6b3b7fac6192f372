\set id random(1, 300000)
UPDATE orders SET status = CASE status WHEN 'open' THEN 'done' ELSE 'open' END WHERE id = :id;
