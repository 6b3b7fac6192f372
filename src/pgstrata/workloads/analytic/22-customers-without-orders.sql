/* customers without orders */ SELECT code, count(*) AS customers, sum(balance) AS balance
FROM (
    SELECT substring(c.phone FROM 1 FOR 2) AS code, c.balance
    FROM customer c
    WHERE substring(c.phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
        AND c.balance > (
            SELECT avg(balance) FROM customer
            WHERE balance > 0 AND substring(phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
        )
        AND NOT EXISTS (SELECT FROM orders o WHERE o.customer_id = c.customer_id)
) AS idle
GROUP BY code
ORDER BY code;
