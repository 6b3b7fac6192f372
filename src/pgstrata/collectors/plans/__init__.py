"""Plans of a workload's statements: `script` takes them out of pgbench's scripts, `explain` asks, `parse` reads."""
