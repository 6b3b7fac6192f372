/* large orders */ SELECT c.name, c.customer_id, o.order_id, o.ordered, o.total, sum(i.quantity) AS quantity
FROM customer c
    JOIN orders o ON o.customer_id = c.customer_id
    JOIN item i ON i.order_id = o.order_id
WHERE o.order_id IN (SELECT order_id FROM item GROUP BY order_id HAVING sum(quantity) > 250)
GROUP BY c.name, c.customer_id, o.order_id, o.ordered, o.total
ORDER BY o.total DESC, o.ordered, o.order_id
LIMIT 100;
