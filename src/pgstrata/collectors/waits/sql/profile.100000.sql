-- One look at the profile of pg_wait_sampling, which counts on from the start of the server: a row for each live process,
-- for each session of the driver one by wait event (none where it was seen without one). @schema@ is the extension's,
-- @application@ how the driver's sessions call themselves. `rows` tells whether the look is there as a whole.
SELECT to_char(extract(epoch FROM statement_timestamp()), 'FM9999999990.000') AS time, a.pid, a.ours::int,
       CASE WHEN a.ours THEN coalesce(p.event_type, '') ELSE '' END AS wait_type,
       CASE WHEN a.ours THEN coalesce(p.event, '') ELSE '' END AS event,
       coalesce(sum(p.count), 0) AS samples, count(*) OVER () AS rows
  FROM (SELECT s.pid, coalesce(s.backend_type = 'client backend' AND s.datname = current_database()
                               AND strpos(s.application_name, @application@) = 1, false) AS ours
          FROM pg_stat_activity s WHERE s.pid <> pg_backend_pid()) a
  LEFT JOIN @schema@.pg_wait_sampling_profile p ON p.pid = a.pid
 GROUP BY 1, 2, 3, 4, 5
