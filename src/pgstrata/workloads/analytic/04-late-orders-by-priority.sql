/* late orders by priority */ SELECT o.priority, count(*) AS orders
FROM orders o
WHERE o.ordered >= date '1993-07-01' AND o.ordered < date '1993-10-01'
    AND EXISTS (SELECT FROM item i WHERE i.order_id = o.order_id AND i.committed < i.received)
GROUP BY o.priority
ORDER BY o.priority;
