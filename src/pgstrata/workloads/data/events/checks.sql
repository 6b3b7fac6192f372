WITH checks (item, expected, found) AS (
    SELECT 'rows of event', @scale@::bigint * 100000, count(*) FROM event
    UNION ALL SELECT 'last number', @scale@::bigint * 100000, max(event_id) FROM event
    UNION ALL SELECT 'values in hundredths', (
        SELECT sum((hashint8(n + 2) & 2147483647) % 100000) FROM generate_series(1, @scale@::bigint * 100000) AS n
    ), sum(round(value * 100))::bigint FROM event
)
SELECT item, expected, found, expected IS NOT DISTINCT FROM found AS ok FROM checks
