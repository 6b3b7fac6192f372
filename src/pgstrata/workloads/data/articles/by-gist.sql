BEGIN;
CREATE TABLE article_gist (id int NOT NULL, title text NOT NULL, body text NOT NULL, words tsvector NOT NULL);
INSERT INTO article_gist SELECT id, title, body, to_tsvector('simple', title || ' ' || body) FROM article_text ORDER BY id;
COMMIT;
ALTER TABLE article_gist ADD PRIMARY KEY (id);
CREATE INDEX article_gist_words ON article_gist USING gist (words);
