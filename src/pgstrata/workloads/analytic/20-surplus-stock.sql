/* surplus stock */ SELECT s.name, s.street
FROM supplier s JOIN nation n ON n.nation_id = s.nation_id
WHERE n.name = 'Canada' AND s.supplier_id IN (
    SELECT u.supplier_id
    FROM supply u
    WHERE u.part_id IN (SELECT part_id FROM part WHERE name LIKE 'l%') AND u.available > (
        SELECT 0.5 * sum(i.quantity)
        FROM item i
        WHERE i.part_id = u.part_id AND i.supplier_id = u.supplier_id
            AND i.shipped >= date '1994-01-01' AND i.shipped < date '1995-01-01'
    )
)
ORDER BY s.name;
