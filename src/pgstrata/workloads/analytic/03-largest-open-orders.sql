/* largest open orders */ SELECT i.order_id, sum(i.price * (1 - i.discount)) AS revenue, o.ordered
FROM customer c
    JOIN orders o ON o.customer_id = c.customer_id
    JOIN item i ON i.order_id = o.order_id
WHERE c.segment = 'buildings' AND o.ordered < date '1995-03-15' AND i.shipped > date '1995-03-15'
GROUP BY i.order_id, o.ordered
ORDER BY revenue DESC, o.ordered, i.order_id
LIMIT 10;
