-- One row per check of data that sysbench has just made.
WITH tables (name, counted, lowest, highest) AS (
    @tables@
), checks (item, expected, found) AS (
    SELECT 'rows of ' || name, @rows@::bigint, counted FROM tables
    UNION ALL SELECT 'lowest id of ' || name, 1, lowest FROM tables
    UNION ALL SELECT 'highest id of ' || name, @rows@, highest FROM tables
)
SELECT item, expected, found, expected IS NOT DISTINCT FROM found AS ok FROM checks
