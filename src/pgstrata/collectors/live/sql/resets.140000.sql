SELECT pgstrata.dealloc::text AS deallocations, coalesce(extract(epoch FROM pgstrata.stats_reset)::text, '') AS reset
  FROM @schema@.pg_stat_statements_info pgstrata
