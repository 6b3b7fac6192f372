-- Whether the server may ask the kernel where its processes sleep (superusers only), and is told: of those that always
-- wait for something, one at least does.
SELECT current_setting('is_superuser') = 'on' AS kernel \gset
\if :kernel
SELECT coalesce(bool_or(pg_read_file('/proc/' || a.pid || '/wchan', 0, 60, true) <> '0'), false) AS kernel
  FROM pg_stat_activity a
 WHERE a.backend_type IN ('checkpointer', 'background writer', 'walwriter') \gset
\endif
