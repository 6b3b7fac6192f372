WITH checks (item, expected, found) AS (
    SELECT 'rows of article_gin', @scale@::bigint * 10000, count(*) FROM article_gin
    UNION ALL SELECT 'rows of article_gist', @scale@::bigint * 10000, count(*) FROM article_gist
    UNION ALL SELECT 'articles that both have', @scale@::bigint * 10000, count(*)
        FROM article_gin JOIN article_gist USING (id, title, body)
    UNION ALL SELECT 'words of all bodies', @scale@::bigint * 1200000,
        sum(length(body) - length(replace(body, ' ', '')) + 1)::bigint FROM article_gin
)
SELECT item, expected, found, expected IS NOT DISTINCT FROM found AS ok FROM checks
