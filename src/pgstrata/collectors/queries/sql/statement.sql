-- A row for each statement of this user in this database, in all from the start of the server on. @schema@ is the
-- extension's, @constant@ what a constant is: none leaves the server. What pgstrata itself asks is left out.
SELECT s.queryid::text AS id,
       translate(regexp_replace(s.query, @constant@, '\1\2\3?', 'g'), E'\t\n\r', '   ') AS query,
@columns@
  FROM @schema@.pg_stat_statements s
 WHERE s.dbid = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
   AND s.userid = (SELECT r.oid FROM pg_roles r WHERE r.rolname = current_user)
   AND s.queryid IS NOT NULL AND s.query !~* '\mpg_(stat|catalog|extension|settings)|clock_timestamp\(\)\) as server'
