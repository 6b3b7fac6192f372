/* suppliers by kind of part */ SELECT p.brand, p.kind, p.size, count(DISTINCT u.supplier_id) AS suppliers
FROM supply u JOIN part p ON p.part_id = u.part_id
WHERE p.brand <> 'brand 45' AND p.kind NOT LIKE 'medium polished%' AND p.size IN (49, 14, 23, 45, 19, 3, 36, 9)
    AND u.supplier_id NOT IN (SELECT supplier_id FROM supplier WHERE note LIKE '%customer%complaints%')
GROUP BY p.brand, p.kind, p.size
ORDER BY suppliers DESC, p.brand, p.kind, p.size;
