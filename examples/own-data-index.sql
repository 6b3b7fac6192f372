CREATE INDEX ON orders (status) WHERE status = 'open';
