-- Clause 2.7: the oldest new order of each district; one that another delivery has just taken is skipped.
@key2@
\set w random(1, :scale)
\set carrier random(1, 10)
