-- The last hundred readings of a device, summed up.
\set device random(1, 1000)
SELECT count(*), min(at), max(at), avg(value) FROM (SELECT at, value FROM event WHERE device_id = :device ORDER BY at DESC LIMIT 100) AS latest;
