-- Both tables have their own copy.
DROP TABLE article_text;
