-- Sums over drawn columns are those of hashint8, which is the same on all versions: a damaged row changes them.
WITH checks (item, expected, found) AS (
    SELECT 'rows of sale', @scale@::bigint * 100000, count(*) FROM sale
    UNION ALL SELECT 'rows of day', 3653, count(*) FROM day
    UNION ALL SELECT 'rows of store', 200, count(*) FROM store
    UNION ALL SELECT 'rows of supplier', 400, count(*) FROM supplier
    UNION ALL SELECT 'rows of product', 5000, count(*) FROM product
    UNION ALL SELECT 'rows of customer', 50000, count(*) FROM customer
    UNION ALL SELECT 'rows of promotion', 300, count(*) FROM promotion
    UNION ALL SELECT 'rows of channel', 6, count(*) FROM channel
    UNION ALL SELECT 'days with sales', least(3653, @scale@::bigint * 100000), count(DISTINCT day_id) FROM sale
    UNION ALL SELECT 'quantity of all sales', (
        SELECT sum(sales_draw(n * 8 + 100000005, 1, 20)) FROM generate_series(1, @scale@::bigint * 100000) AS n
    ), sum(quantity) FROM sale
)
SELECT item, expected, found, expected IS NOT DISTINCT FROM found AS ok FROM checks
