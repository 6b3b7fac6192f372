\set id random(1, :rows)
BEGIN;
UPDATE hot SET n = n + 1 WHERE id = :id;
SELECT pg_sleep(0.002);
END;
