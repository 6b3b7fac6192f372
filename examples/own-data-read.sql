\set region random(1, 4)
SELECT count(*), sum(amount) FROM orders WHERE status = 'open' AND region = :region;
