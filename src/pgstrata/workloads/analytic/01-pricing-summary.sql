/* pricing summary */ SELECT returned, status, sum(quantity) AS quantity, sum(price) AS price,
    sum(price * (1 - discount)) AS discounted, sum(price * (1 - discount) * (1 + tax)) AS charged,
    avg(quantity) AS mean_quantity, avg(price) AS mean_price, avg(discount) AS mean_discount, count(*) AS items
FROM item
WHERE shipped <= date '1998-09-02'
GROUP BY returned, status
ORDER BY returned, status;
