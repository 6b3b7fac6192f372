"""Stacks of the server's processes by perf, and hardware counters where there are any."""
