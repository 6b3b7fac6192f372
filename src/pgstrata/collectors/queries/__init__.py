"""What pg_stat_statements counts of each statement."""
