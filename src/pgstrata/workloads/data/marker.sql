-- Made first in every database that pgstrata creates. A database without it is not pgstrata's and is not touched.
CREATE TABLE pgstrata_marker (
    made timestamptz NOT NULL DEFAULT now(),
    note text NOT NULL
);
INSERT INTO pgstrata_marker (note)
VALUES ('This database was made by pgstrata for a benchmark; it is copied and dropped without asking.');
