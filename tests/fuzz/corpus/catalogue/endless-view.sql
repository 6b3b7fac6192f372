DROP TABLE measurement; CREATE VIEW measurement AS WITH RECURSIVE n(run) AS (SELECT 1 UNION ALL SELECT run FROM n) SELECT run, 'x' metric, 1.0 value FROM n;
