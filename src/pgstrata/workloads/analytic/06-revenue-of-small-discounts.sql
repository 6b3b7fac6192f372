/* revenue of small discounts */ SELECT sum(price * discount) AS revenue
FROM item
WHERE shipped >= date '1994-01-01' AND shipped < date '1995-01-01' AND discount BETWEEN 0.05 AND 0.07 AND quantity < 24;
