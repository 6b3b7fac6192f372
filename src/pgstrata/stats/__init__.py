"""Statistics on plain arrays: ranks, intervals, the boundaries of the sequential rule, verdicts, the noise floor.

What belongs here: formulas, each with its source, on numpy arrays of block differences D = ln(value / baseline value),
oriented so that D > 0 means better. What does not: runs, plans, pairing, texts for people (see `pgstrata.compare`).
Only numpy is imported: scipy would double the time that the command line needs to start.
"""
