/* best supplier */ WITH revenue AS (
    SELECT supplier_id, sum(price * (1 - discount)) AS total
    FROM item
    WHERE shipped >= date '1996-01-01' AND shipped < date '1996-04-01'
    GROUP BY supplier_id
)
SELECT s.supplier_id, s.name, s.street, s.phone, revenue.total
FROM supplier s JOIN revenue ON revenue.supplier_id = s.supplier_id
WHERE revenue.total = (SELECT max(total) FROM revenue)
ORDER BY s.supplier_id;
