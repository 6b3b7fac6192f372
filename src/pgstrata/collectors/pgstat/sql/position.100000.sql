-- 10: functions of the WAL have new names.
SELECT 'lsn.position', pg_wal_lsn_diff(
    CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END, '0/0'
)
