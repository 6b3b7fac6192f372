/* small quantities */ SELECT sum(i.price) / 7.0 AS yearly
FROM item i JOIN part p ON p.part_id = i.part_id
WHERE p.brand = 'brand 23' AND p.container IN ('medium box', 'medium bag', 'medium can')
    AND i.quantity < (SELECT 0.2 * avg(same.quantity) FROM item same WHERE same.part_id = p.part_id);
