/* trade between two nations */ SELECT supplying, buying, year, sum(volume) AS revenue
FROM (
    SELECT a.name AS supplying, b.name AS buying, extract(year FROM i.shipped) AS year, i.price * (1 - i.discount) AS volume
    FROM supplier s
        JOIN item i ON i.supplier_id = s.supplier_id
        JOIN orders o ON o.order_id = i.order_id
        JOIN customer c ON c.customer_id = o.customer_id
        JOIN nation a ON a.nation_id = s.nation_id
        JOIN nation b ON b.nation_id = c.nation_id
    WHERE (a.name, b.name) IN (('France', 'Germany'), ('Germany', 'France'))
        AND i.shipped BETWEEN date '1995-01-01' AND date '1996-12-31'
) AS shipping
GROUP BY supplying, buying, year
ORDER BY supplying, buying, year;
