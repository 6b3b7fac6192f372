-- Texts of some statements. Constants, which servers before 16 keep in statements that are no query, do not leave the
-- server.
SELECT DISTINCT ON (s.queryid) s.queryid::text AS pgstrata,
       left(translate(regexp_replace(s.query, @constant@, '\1\2\3?', 'g'), E'\t\n\r\f\x0b', '     '), 8000) AS query
  FROM @schema@.pg_stat_statements s
 WHERE s.queryid::text = ANY (string_to_array(@ids@, ' ')) AND s.query <> '<insufficient privilege>'
