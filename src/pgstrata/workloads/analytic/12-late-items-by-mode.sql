/* late items by mode */ SELECT i.mode, sum(CASE WHEN o.priority IN ('1 urgent', '2 high') THEN 1 ELSE 0 END) AS preferred,
    sum(CASE WHEN o.priority IN ('1 urgent', '2 high') THEN 0 ELSE 1 END) AS others
FROM orders o JOIN item i ON i.order_id = o.order_id
WHERE i.mode IN ('mail', 'ship') AND i.committed < i.received AND i.shipped < i.committed
    AND i.received >= date '1994-01-01' AND i.received < date '1995-01-01'
GROUP BY i.mode
ORDER BY i.mode;
