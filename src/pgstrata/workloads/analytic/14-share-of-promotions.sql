/* share of promotions */ SELECT 100 * sum(CASE WHEN p.kind LIKE 'promotional%' THEN i.price * (1 - i.discount) ELSE 0 END) / sum(i.price * (1 - i.discount)) AS share
FROM item i JOIN part p ON p.part_id = i.part_id
WHERE i.shipped >= date '1995-09-01' AND i.shipped < date '1995-10-01';
