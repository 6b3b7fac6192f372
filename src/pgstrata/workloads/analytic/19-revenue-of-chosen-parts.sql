/* revenue of chosen parts */ SELECT sum(i.price * (1 - i.discount)) AS revenue
FROM item i JOIN part p ON p.part_id = i.part_id
WHERE i.mode IN ('air', 'air express') AND i.instructions = 'deliver in person' AND (
    (p.brand = 'brand 12' AND p.container LIKE 'small%' AND i.quantity BETWEEN 1 AND 11 AND p.size BETWEEN 1 AND 15)
    OR (p.brand = 'brand 23' AND p.container LIKE 'medium%' AND i.quantity BETWEEN 10 AND 20 AND p.size BETWEEN 1 AND 30)
    OR (p.brand = 'brand 34' AND p.container LIKE 'large%' AND i.quantity BETWEEN 20 AND 30 AND p.size BETWEEN 1 AND 45)
);
