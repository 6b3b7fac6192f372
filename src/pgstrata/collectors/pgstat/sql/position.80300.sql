-- Position in the WAL; up to 9.1. Before 9.3 the last of the 256 segments of each log file is never used.
SELECT 'lsn.position'::text,
       ('x' || lpad(split_part(p.place, '/', 1), 8, '0'))::bit(32)::bigint::numeric * 4278190080
       + ('x' || lpad(split_part(p.place, '/', 2), 8, '0'))::bit(32)::bigint
FROM (SELECT pg_current_xlog_insert_location() AS place) p
