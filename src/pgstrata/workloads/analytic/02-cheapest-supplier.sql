/* cheapest supplier */ SELECT s.balance, s.name, n.name AS nation, p.part_id, p.maker, s.phone, u.cost
FROM part p
    JOIN supply u ON u.part_id = p.part_id
    JOIN supplier s ON s.supplier_id = u.supplier_id
    JOIN nation n ON n.nation_id = s.nation_id
    JOIN region r ON r.region_id = n.region_id
WHERE p.size = 15 AND p.kind LIKE '%brass' AND r.name = 'Europe' AND u.cost = (
    SELECT min(cheap.cost)
    FROM supply cheap
        JOIN supplier seller ON seller.supplier_id = cheap.supplier_id
        JOIN nation land ON land.nation_id = seller.nation_id
        JOIN region area ON area.region_id = land.region_id
    WHERE cheap.part_id = p.part_id AND area.name = 'Europe'
)
ORDER BY s.balance DESC, n.name, s.name, p.part_id
LIMIT 100;
