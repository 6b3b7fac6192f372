-- Clause 2.8, as one call.
@key2@
\set w random(1, :scale)
\set d random(1, 10)
\set few random(10, 20)
SELECT tpcc_stock_level(:w, :d, :few);
@think5@
