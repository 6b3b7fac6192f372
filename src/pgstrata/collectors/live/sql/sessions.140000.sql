-- One look at all sessions that are not idle: a row each. Parameters: what a constant is, and how many of those that wait
-- for locks are asked who blocks them.
SELECT pgstrata.kind, translate(coalesce(pgstrata.datname, ''), E'\t\n\r', '   ') AS database,
       translate(coalesce(pgstrata.usename, ''), E'\t\n\r', '   ') AS role,
       translate(coalesce(pgstrata.application_name, ''), E'\t\n\r', '   ') AS application,
       coalesce(pgstrata.state, '') AS state, coalesce(pgstrata.wait_event_type, '') AS wait_type, coalesce(pgstrata.wait_event, '') AS event,
       pgstrata.query_id,
       CASE WHEN pgstrata.query_id <> '' OR pgstrata.state IS NULL OR pgstrata.kind NOT IN ('client backend', 'parallel worker') THEN ''
            WHEN pgstrata.state = 'active' OR pgstrata.state LIKE 'idle in%' AND bool_or(pgstrata.wait_event_type = 'Lock') OVER ()
            THEN left(translate(regexp_replace(pgstrata.query, @constant@, '\1\2\3?', 'g'), E'\t\n\r\f\x0b', '     '), 1000)
            ELSE '' END AS query,
       pgstrata.pid, coalesce(extract(epoch FROM clock_timestamp() - pgstrata.xact_start)::int, 0) AS held,
       CASE WHEN pgstrata.wait_event_type = 'Lock' AND pgstrata.place <= @most@ THEN array_to_string(pg_blocking_pids(pgstrata.pid), ' ')
            ELSE '' END AS blockers
  FROM (SELECT s.*, coalesce(s.backend_type, '') AS kind, coalesce(s.identity::text, '') AS query_id,
               row_number() OVER (PARTITION BY s.wait_event_type ORDER BY s.query_start) AS place
          FROM (SELECT pid, datname, usename, application_name, state, wait_event_type, wait_event, backend_type, xact_start, query_start, query, query_id AS identity FROM pg_stat_activity) s
         WHERE s.pid <> pg_backend_pid() AND s.application_name <> 'pgstrata'
           AND CASE WHEN s.backend_type = 'client backend' THEN s.state <> 'idle'
                    ELSE coalesce(s.wait_event_type, '') <> 'Activity' END) pgstrata
