/* most valuable stock */ SELECT u.part_id, sum(u.cost * u.available) AS value
FROM supply u
    JOIN supplier s ON s.supplier_id = u.supplier_id
    JOIN nation n ON n.nation_id = s.nation_id
WHERE n.name = 'Germany'
GROUP BY u.part_id
HAVING sum(u.cost * u.available) > (
    SELECT sum(stock.cost * stock.available) * 0.006
    FROM supply stock
        JOIN supplier seller ON seller.supplier_id = stock.supplier_id
        JOIN nation land ON land.nation_id = seller.nation_id
    WHERE land.name = 'Germany'
) / :scale
ORDER BY value DESC, u.part_id;
