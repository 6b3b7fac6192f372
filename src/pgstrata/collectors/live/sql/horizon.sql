-- What keeps vacuum from removing dead rows of this database: the oldest of all snapshots that are in use.
SELECT h.kind AS pgstrata, translate(coalesce(h.name, ''), E'\t\n\r', '   ') AS name, h.pid, coalesce(h.state, '') AS state,
       age(h.xmin) AS age, coalesce(extract(epoch FROM clock_timestamp() - h.since)::bigint, 0) AS held
  FROM (SELECT 'session' AS kind, application_name AS name, pid, state, xact_start AS since,
               CASE WHEN backend_xmin IS NULL OR age(backend_xid) > age(backend_xmin) THEN backend_xid
                    ELSE backend_xmin END AS xmin
          FROM pg_stat_activity
         WHERE backend_type IN ('client backend', 'parallel worker') AND datname = current_database()
           AND pid <> pg_backend_pid()
        UNION ALL
        SELECT 'prepared transaction', gid, 0, '', prepared, transaction
          FROM pg_prepared_xacts
         WHERE database = current_database()
        UNION ALL
        SELECT 'replication slot', slot_name, coalesce(active_pid, 0), '', NULL, xmin
          FROM pg_replication_slots
        UNION ALL
        SELECT 'standby', application_name, pid, '', NULL, backend_xmin
          FROM pg_stat_replication) h
 WHERE h.xmin IS NOT NULL
 ORDER BY age(h.xmin) DESC, held DESC
 LIMIT 1
