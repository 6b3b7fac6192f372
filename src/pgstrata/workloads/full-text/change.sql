-- An article gets another word.
\set id random(1, 10000 * :scale)
\set octave random(3, 14)
\set a (1 << :octave) + random(0, (1 << :octave) - 1)
UPDATE article_@index@ SET body = body || ' ' || article_word(:a), words = to_tsvector('simple', title || ' ' || body || ' ' || article_word(:a)) WHERE id = :id;
