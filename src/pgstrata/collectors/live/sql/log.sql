-- Where the log is, as far as the recorder's role may know it: a path, absolute or below the data directory, and that.
SELECT coalesce(pg_current_logfile(), '') AS pgstrata,
       coalesce((SELECT s.setting FROM pg_settings s WHERE s.name = 'data_directory'), '') AS data, pg_backend_pid() AS backend
