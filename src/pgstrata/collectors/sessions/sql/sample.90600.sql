-- One sample: a row for each session of this database, and for each process of the server that works or waits.
-- :application is how the driver's own sessions call themselves.
SELECT pg_catalog.to_char(extract(epoch FROM clock_timestamp()), 'FM9999999990.0000') AS time,
       a.pid, 'client backend' AS kind,
       (a.datname = current_database() AND a.application_name = :'application')::int AS ours,
       coalesce(a.state, '') AS state, coalesce(a.wait_event_type, '') AS wait_type,
       coalesce(a.wait_event, '') AS event, '' AS query_id,
       CASE WHEN a.wait_event_type = 'Lock' THEN array_to_string(pg_blocking_pids(a.pid), ' ') ELSE '' END AS blockers,
       CASE WHEN a.state = 'active' AND a.datname = current_database() THEN left(regexp_replace(regexp_replace(a.query,
            '[eE]''(\\.|''''|[^''\\])*(''|$)|''(''''|[^''])*(''|$)|(\$[A-Za-z_]*\$).*?(\5|$)|\$?\m[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?\M', '?', 'g'),
            '\s+', ' ', 'g'), 400) ELSE '' END AS query
  FROM pg_stat_activity a
 WHERE a.pid <> pg_backend_pid() AND a.application_name <> 'pgstrata'
   AND (a.datname = current_database() OR coalesce(a.wait_event_type, '') <> 'Activity')
