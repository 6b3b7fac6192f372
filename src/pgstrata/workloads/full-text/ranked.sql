-- The ten articles that two words fit best.
\set octave random(4, 8)
\set a (1 << :octave) + random(0, (1 << :octave) - 1)
\set rarer random(6, 12)
\set b (1 << :rarer) + random(0, (1 << :rarer) - 1)
SELECT id, title, ts_rank(words, query) AS fit FROM article_@index@, to_tsquery('simple', article_word(:a) || ' | ' || article_word(:b)) AS query WHERE words @@ query ORDER BY fit DESC, id LIMIT 10;
