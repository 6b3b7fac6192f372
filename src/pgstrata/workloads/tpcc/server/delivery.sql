-- Clause 2.7, as one call.
@key2@
\set w random(1, :scale)
\set carrier random(1, 10)
SELECT tpcc_delivery(:w, :carrier);
@think5@
