SELECT i.dealloc::text AS pgstrata, coalesce(extract(epoch FROM i.stats_reset)::text, '') AS reset
  FROM @schema@.pg_stat_statements_info i
