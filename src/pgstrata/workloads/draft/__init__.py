"""Drafts of workloads from pg_stat_statements: statements become pgbench scripts, parameters variables with ranges.

Statements are read by heuristics over tokens, not by a grammar: wherever these do not find what a parameter is compared
with, the script says so in a line that begins with `-- LOOK:`, and is no valid script until a person has removed it.
"""
