/* market share */ SELECT year, sum(CASE nation WHEN 'Brazil' THEN volume ELSE 0 END) / sum(volume) AS share
FROM (
    SELECT extract(year FROM o.ordered) AS year, i.price * (1 - i.discount) AS volume, b.name AS nation
    FROM part p
        JOIN item i ON i.part_id = p.part_id
        JOIN supplier s ON s.supplier_id = i.supplier_id
        JOIN orders o ON o.order_id = i.order_id
        JOIN customer c ON c.customer_id = o.customer_id
        JOIN nation a ON a.nation_id = c.nation_id
        JOIN region r ON r.region_id = a.region_id
        JOIN nation b ON b.nation_id = s.nation_id
    WHERE r.name = 'America' AND o.ordered BETWEEN date '1995-01-01' AND date '1996-12-31' AND p.kind = 'economy anodised steel'
) AS sold
GROUP BY year
ORDER BY year;
