-- Clause 2.6: the last order of a customer.
@key2@
\set w random(1, :scale)
\set d random(1, 10)
\set named random(1, 100)
\set name ((random(0, 255) | random(0, 999)) + 209) % 1000
\set c @customer@
