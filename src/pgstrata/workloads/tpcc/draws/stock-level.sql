-- Clause 2.8: items of a district's last 20 orders of which there is little.
@key2@
\set w random(1, :scale)
\set d random(1, 10)
\set few random(10, 20)
