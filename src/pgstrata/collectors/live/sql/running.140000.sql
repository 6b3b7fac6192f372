-- Texts of some statements that are running: those that have not ended yet may be unknown to pg_stat_statements.
SELECT DISTINCT ON (a.query_id) a.query_id::text AS pgstrata,
       left(translate(regexp_replace(a.query, @constant@, '\1\2\3?', 'g'), E'\t\n\r\f\x0b', '     '), 8000) AS query
  FROM pg_stat_activity a
 WHERE a.state = 'active' AND a.query_id::text = ANY (string_to_array(@ids@, ' '))
