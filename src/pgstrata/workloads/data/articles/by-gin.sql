BEGIN;
CREATE TABLE article_gin (id int NOT NULL, title text NOT NULL, body text NOT NULL, words tsvector NOT NULL);
INSERT INTO article_gin SELECT id, title, body, to_tsvector('simple', title || ' ' || body) FROM article_text ORDER BY id;
COMMIT;
ALTER TABLE article_gin ADD PRIMARY KEY (id);
CREATE INDEX article_gin_words ON article_gin USING gin (words);
