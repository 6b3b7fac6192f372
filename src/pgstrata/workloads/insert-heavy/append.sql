-- Ten readings of devices, one statement.
\set device random(1, 1000)
\set value random(1, 100000)
INSERT INTO event (device_id, at, kind, value, note) SELECT (:device + n * 97) % 1000 + 1, clock_timestamp()::timestamp, n, (:value + n) / 100.0, md5((:value::bigint * :device + n)::text) FROM generate_series(1, 10) AS n;
