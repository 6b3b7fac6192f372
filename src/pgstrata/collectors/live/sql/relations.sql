-- Tables and indexes of this database that were ever used, of each so many that were used most: a row each.
-- Parameter: how many.
(SELECT 'table' AS pgstrata, translate(quote_ident(s.schemaname) || '.' || quote_ident(s.relname), E'\t\n\r', '   ') AS name,
        '' AS parent, s.seq_scan, s.seq_tup_read, coalesce(s.idx_scan, 0), coalesce(s.idx_tup_fetch, 0), s.n_tup_ins,
        s.n_tup_upd, s.n_tup_hot_upd, s.n_tup_del,
        i.heap_blks_hit + coalesce(i.idx_blks_hit, 0) + coalesce(i.toast_blks_hit, 0) + coalesce(i.tidx_blks_hit, 0) AS hit,
        i.heap_blks_read + coalesce(i.idx_blks_read, 0) + coalesce(i.toast_blks_read, 0) + coalesce(i.tidx_blks_read, 0),
        s.vacuum_count + s.autovacuum_count, s.analyze_count + s.autoanalyze_count, s.n_live_tup, s.n_dead_tup
   FROM pg_stat_user_tables s JOIN pg_statio_user_tables i USING (relid)
  WHERE s.seq_scan + coalesce(s.idx_scan, 0) + s.n_tup_ins + s.n_tup_upd + s.n_tup_del + i.heap_blks_hit > 0
  ORDER BY hit DESC
  LIMIT @most@)
UNION ALL
(SELECT 'index', translate(quote_ident(s.schemaname) || '.' || quote_ident(s.indexrelname), E'\t\n\r', '   '),
        translate(quote_ident(s.schemaname) || '.' || quote_ident(s.relname), E'\t\n\r', '   '),
        0, 0, s.idx_scan, s.idx_tup_read, 0, 0, 0, 0, i.idx_blks_hit AS hit, i.idx_blks_read, 0, 0, 0, 0
   FROM pg_stat_user_indexes s JOIN pg_statio_user_indexes i USING (indexrelid)
  WHERE s.idx_scan + i.idx_blks_hit > 0
  ORDER BY hit DESC
  LIMIT @most@)
