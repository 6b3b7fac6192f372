/* suppliers who kept others waiting */ SELECT s.name, count(*) AS items
FROM supplier s
    JOIN item i ON i.supplier_id = s.supplier_id
    JOIN orders o ON o.order_id = i.order_id
    JOIN nation n ON n.nation_id = s.nation_id
WHERE o.status = 'F' AND i.received > i.committed AND n.name IN ('Egypt', 'Iran', 'Iraq', 'Jordan')
    AND EXISTS (SELECT FROM item other WHERE other.order_id = i.order_id AND other.supplier_id <> i.supplier_id)
    AND NOT EXISTS (
        SELECT FROM item late
        WHERE late.order_id = i.order_id AND late.supplier_id <> i.supplier_id AND late.received > late.committed
    )
GROUP BY s.name
ORDER BY items DESC, s.name
LIMIT 100;
