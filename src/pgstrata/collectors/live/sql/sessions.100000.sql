-- One look at all sessions that are not idle: a row each. Parameters: what a constant is, and how many of those that
-- wait for locks are asked who blocks them.
SELECT a.kind AS pgstrata, translate(coalesce(a.datname, ''), E'\t\n\r', '   ') AS database,
       translate(coalesce(a.usename, ''), E'\t\n\r', '   ') AS role,
       translate(coalesce(a.application_name, ''), E'\t\n\r', '   ') AS application,
       coalesce(a.state, '') AS state, coalesce(a.wait_event_type, '') AS wait_type,
       coalesce(a.wait_event, '') AS event, a.query_id,
       CASE WHEN a.query_id <> '' OR a.state IS NULL OR a.kind NOT IN ('client backend', 'parallel worker') THEN ''
            WHEN a.state = 'active' OR a.state LIKE 'idle in%' AND bool_or(a.wait_event_type = 'Lock') OVER ()
            THEN left(translate(regexp_replace(a.query, @constant@, '\1\2\3?', 'g'), E'\t\n\r\f\x0b', '     '), 1000)
            ELSE '' END AS query,
       a.pid, coalesce(extract(epoch FROM clock_timestamp() - a.xact_start)::int, 0) AS held,
       CASE WHEN a.wait_event_type = 'Lock' AND a.place <= @most@ THEN array_to_string(pg_blocking_pids(a.pid), ' ')
            ELSE '' END AS blockers
  FROM (SELECT s.*, coalesce(s.backend_type, '') AS kind, '' AS query_id,
               row_number() OVER (PARTITION BY s.wait_event_type ORDER BY s.query_start) AS place
          FROM (SELECT pid, datname, usename, application_name, state, wait_event_type, wait_event,
                       backend_type, xact_start, query_start, query
                  FROM pg_stat_activity) s
         WHERE s.pid <> pg_backend_pid() AND s.application_name <> 'pgstrata'
           AND CASE WHEN s.backend_type = 'client backend' THEN s.state <> 'idle'
                    ELSE coalesce(s.wait_event_type, '') <> 'Activity' END) a
