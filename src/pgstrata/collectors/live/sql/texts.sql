-- Texts of some statements; constants, which servers before 16 keep in statements that are no query, do not leave the server.
SELECT DISTINCT ON (pgstrata.queryid) pgstrata.queryid::text AS id,
       left(translate(regexp_replace(pgstrata.query, @constant@, '\1\2\3?', 'g'), E'\t\n\r\f\x0b', '     '), 8000) AS query
  FROM @schema@.pg_stat_statements pgstrata
 WHERE pgstrata.queryid::text = ANY (string_to_array(@ids@, ' ')) AND pgstrata.query <> '<insufficient privilege>'
