/* orders of a customer */ SELECT orders, count(*) AS customers
FROM (
    SELECT c.customer_id, count(o.order_id) AS orders
    FROM customer c LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.note NOT LIKE '%special%requests%'
    GROUP BY c.customer_id
) AS counted
GROUP BY orders
ORDER BY customers DESC, orders DESC;
