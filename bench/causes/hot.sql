\set id random(1, :rows)
UPDATE hot SET n = n + 1 WHERE id = :id;
