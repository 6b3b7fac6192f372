"""What sessions are doing, sampled from pg_stat_activity while a run is measured."""
