-- Texts of some statements as EXPLAIN takes them, a row each: what is in the way, and without that the text. Comments are
-- left out. A text with quotes has constants, and does not leave the server.
SELECT DISTINCT ON (s.queryid) s.queryid::text AS pgstrata, p.problem,
       CASE WHEN p.problem = '' THEN t.text ELSE '' END AS text
  FROM @schema@.pg_stat_statements s
 CROSS JOIN LATERAL (SELECT regexp_replace(s.query, '/[*].*?[*]/', ' ', 'g') AS text) c
 CROSS JOIN LATERAL (
       SELECT translate(regexp_replace(c.text, '--[^\n\r]*', ' ', 'g'), E'\t\n\r\f\x0b', '     ') AS text) t
 CROSS JOIN LATERAL (
       SELECT CASE WHEN t.text !~* '^[ (]*(select|insert|update|delete|merge|values|with)([^a-z0-9_$]|$)' THEN 'kind'
                   WHEN current_setting('is_superuser') = 'on' THEN 'superuser'
                   WHEN s.dbid <> (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
                   THEN 'other database'
                   WHEN t.text ~ '[;'']|[$][^0-9]|[$]$' THEN 'constants'
                   WHEN length(t.text) > @longest@ THEN 'length'
                   ELSE '' END AS problem) p
 WHERE s.queryid::text = ANY (string_to_array(@ids@, ' ')) AND s.query <> '<insufficient privilege>'
 ORDER BY s.queryid, p.problem
