-- A reading a second of a thousand devices in turn. hashint8 is the same on all versions.
BEGIN;
CREATE TABLE event (
    event_id bigserial NOT NULL,
    device_id int NOT NULL,
    at timestamp NOT NULL,
    kind smallint NOT NULL,
    value double precision NOT NULL,
    note text NOT NULL
);
INSERT INTO event (device_id, at, kind, value, note)
SELECT (hashint8(n) & 2147483647) % 1000 + 1, timestamp '2024-01-01' + n * interval '1 second', (hashint8(n + 1) & 2147483647) % 20,
    (hashint8(n + 2) & 2147483647) % 100000 / 100.0, md5(n::text)
FROM generate_series(1, @scale@::bigint * 100000) AS n;
COMMIT;
ALTER TABLE event ADD PRIMARY KEY (event_id);
CREATE INDEX event_by_device ON event (device_id, at);
CREATE INDEX event_by_kind ON event (kind, at);
CREATE INDEX event_by_note ON event (note);
