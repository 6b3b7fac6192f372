SELECT 'regions' AS item, 4 AS expected, count(*) AS found, count(*) = 4 AS ok FROM regions
UNION ALL
SELECT 'orders', 300000, count(*), count(*) = 300000 FROM orders JOIN regions ON regions.id = orders.region;
