/* customers who returned goods */ SELECT c.customer_id, c.name, sum(i.price * (1 - i.discount)) AS lost, c.balance, n.name AS nation, c.street, c.phone, c.note
FROM customer c
    JOIN orders o ON o.customer_id = c.customer_id
    JOIN item i ON i.order_id = o.order_id
    JOIN nation n ON n.nation_id = c.nation_id
WHERE o.ordered >= date '1993-10-01' AND o.ordered < date '1994-01-01' AND i.returned = 'R'
GROUP BY c.customer_id, c.name, c.balance, c.phone, n.name, c.street, c.note
ORDER BY lost DESC, c.customer_id
LIMIT 20;
