-- The words that are searched for are those of the text, whatever was changed.
SELECT 'articles of article_gin whose words are others than their text''s' AS item, 0 AS expected, count(*) AS found, count(*) = 0 AS ok
FROM article_gin WHERE words <> to_tsvector('simple', title || ' ' || body)
UNION ALL
SELECT 'articles of article_gist whose words are others than their text''s', 0, count(*), count(*) = 0
FROM article_gist WHERE words <> to_tsvector('simple', title || ' ' || body)
