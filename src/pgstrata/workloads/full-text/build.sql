-- The index of all words, built anew.
REINDEX INDEX article_@index@_words;
