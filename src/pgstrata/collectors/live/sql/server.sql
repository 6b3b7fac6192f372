-- What the recorder has to know of the server, a row. Each extension's schema is quoted where it must be.
SELECT current_setting('server_version') AS pgstrata, current_setting('server_version_num') AS number,
       current_setting('default_transaction_read_only') AS read_only,
       (SELECT pg_has_role(r.oid, 'USAGE') FROM pg_roles r WHERE r.rolname = 'pg_read_all_stats') AS sees_all,
       pg_is_in_recovery() AS standby, extract(epoch FROM pg_postmaster_start_time()) AS started,
       coalesce(host(inet_server_addr()), '') AS address, pg_backend_pid() AS backend,
       current_setting('track_activities') AS activities,
       coalesce((SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                  WHERE e.extname = 'pg_stat_statements'), '') AS counting,
       coalesce(current_setting('pg_stat_statements.max', true), '') AS loaded,
       coalesce(current_setting('compute_query_id', true), 'off') AS identities,
       pg_relation_size('pg_catalog.pg_class') AS catalogue, current_database() AS database,
       extract(epoch FROM clock_timestamp()) AS clock, current_setting('max_connections') AS connections,
       current_setting('shared_buffers') AS buffers, coalesce(current_setting('track_io_timing', true), '') AS timing
