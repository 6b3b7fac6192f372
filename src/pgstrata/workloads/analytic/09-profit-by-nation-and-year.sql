/* profit by nation and year */ SELECT nation, year, sum(amount) AS profit
FROM (
    SELECT n.name AS nation, extract(year FROM o.ordered) AS year, i.price * (1 - i.discount) - u.cost * i.quantity AS amount
    FROM part p
        JOIN item i ON i.part_id = p.part_id
        JOIN supply u ON u.part_id = i.part_id AND u.supplier_id = i.supplier_id
        JOIN supplier s ON s.supplier_id = i.supplier_id
        JOIN orders o ON o.order_id = i.order_id
        JOIN nation n ON n.nation_id = s.nation_id
    WHERE p.name LIKE '%green%'
) AS profits
GROUP BY nation, year
ORDER BY nation, year DESC;
