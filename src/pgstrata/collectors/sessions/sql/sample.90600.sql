-- One sample: a row for each session of the driver, for each other one of this database that is in a transaction, and
-- for each process that works beside them. Parameters: how the driver's sessions call themselves, what a constant is,
-- and seconds to sleep before it looks.
SELECT to_char(extract(epoch FROM statement_timestamp()) + :'settle', 'FM9999999990.0000') AS time, a.pid,
       CASE WHEN a.query LIKE 'autovacuum:%' THEN 'autovacuum worker'
            WHEN a.client_port IS NULL THEN 'parallel worker' ELSE 'client backend' END AS kind,
       (a.datname = current_database() AND strpos(a.application_name, :'application') = 1)::int AS ours,
       coalesce(a.state, '') AS state, coalesce(a.wait_event_type, '') AS wait_type, coalesce(a.wait_event, '') AS event,
       '' AS query_id, '' AS leader,
       CASE WHEN a.wait_event_type = 'Lock' THEN array_to_string(pg_blocking_pids(a.pid), ' ') ELSE '' END AS blockers,
       CASE WHEN a.state = 'active' OR a.state LIKE 'idle in%' AND bool_or(a.wait_event_type = 'Lock') OVER ()
            THEN left(translate(regexp_replace(a.query, :'constant', '\1\2\3?', 'g'), E'\t\n\r\f\x0b', '     '), 1000)
            ELSE '' END AS query
  FROM pg_stat_activity a
 WHERE (SELECT pg_sleep(:'settle') IS NOT NULL) -- evaluated once, before anything is looked at
   AND a.pid <> pg_backend_pid() AND a.application_name <> 'pgstrata' AND a.datname = current_database()
   AND (a.state <> 'idle' OR strpos(a.application_name, :'application') = 1)
