-- How many articles have two words.
\set octave random(2, 6)
\set a (1 << :octave) + random(0, (1 << :octave) - 1)
\set rarer random(4, 12)
\set b (1 << :rarer) + random(0, (1 << :rarer) - 1)
SELECT count(*) FROM article_@index@ WHERE words @@ to_tsquery('simple', article_word(:a) || ' & ' || article_word(:b));
