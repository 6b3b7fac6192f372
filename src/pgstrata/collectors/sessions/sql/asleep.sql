-- Of the driver's sessions that are in a statement, and wait for nothing that the server names, the kernel is asked where
-- their process sleeps (0: it does not): that stands behind the state, or ? if by then the session waits for something
-- that has a name. The 0 in the sum has that looked at after the kernel's answer.
-- Sessions that have just come may be gone before the answer, which would be an error.
CASE
    WHEN a.state = 'active' AND a.wait_event IS NULL AND strpos(a.application_name, :'application') = 1
        AND a.datname = current_database() AND a.backend_start < statement_timestamp() - interval '1 second'
    THEN coalesce((
        SELECT '/' || CASE WHEN b.wait_event IS NULL THEN k.place ELSE '?' END
          FROM (SELECT pg_read_file('/proc/' || a.pid || '/wchan', 0, 60, true) AS place OFFSET 0) k,
               pg_stat_get_activity(a.pid + 0 * coalesce(length(k.place), 0)) b
    ), '')
    ELSE '' END
