"""What pg_stat_statements counts of each statement: `sampler` takes it before and after, `parse` subtracts."""
