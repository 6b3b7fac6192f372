BEGIN;
CREATE UNLOGGED TABLE article_text (id int NOT NULL, title text NOT NULL, body text NOT NULL);
INSERT INTO article_text
SELECT id, 'article ' || id, (
    SELECT string_agg(article_word(article_rank(id * 512::bigint + place * 2)), ' ' ORDER BY place)
    FROM generate_series(1, 120) AS place
)
FROM generate_series(1, @scale@ * 10000) AS id;
COMMIT;
