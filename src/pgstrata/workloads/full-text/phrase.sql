-- Articles in which one word follows another.
\set octave random(1, 4)
\set a (1 << :octave) + random(0, (1 << :octave) - 1)
\set other random(2, 7)
\set b (1 << :other) + random(0, (1 << :other) - 1)
SELECT id, title FROM article_@index@ WHERE words @@ to_tsquery('simple', article_word(:a) || ' <-> ' || article_word(:b)) ORDER BY id LIMIT 20;
