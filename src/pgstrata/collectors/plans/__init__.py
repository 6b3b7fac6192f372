"""Plans of a workload's statements: `explain` asks for them, `parse` reads what was kept of the answers."""
