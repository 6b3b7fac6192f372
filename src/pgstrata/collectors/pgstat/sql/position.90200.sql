-- Position in the WAL; 9.2 to 9.6.
SELECT 'lsn.position', pg_xlog_location_diff(
    CASE WHEN pg_is_in_recovery() THEN pg_last_xlog_replay_location() ELSE pg_current_xlog_insert_location() END,
    '0/0'
)
