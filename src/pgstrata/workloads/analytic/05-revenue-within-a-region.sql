/* revenue within a region */ SELECT n.name, sum(i.price * (1 - i.discount)) AS revenue
FROM customer c
    JOIN orders o ON o.customer_id = c.customer_id
    JOIN item i ON i.order_id = o.order_id
    JOIN supplier s ON s.supplier_id = i.supplier_id AND s.nation_id = c.nation_id
    JOIN nation n ON n.nation_id = s.nation_id
    JOIN region r ON r.region_id = n.region_id
WHERE r.name = 'Asia' AND o.ordered >= date '1994-01-01' AND o.ordered < date '1995-01-01'
GROUP BY n.name
ORDER BY revenue DESC;
