"""Results of other tools as observations: output of load generators in folders, tables, JSON, histories.

What belongs here: turning the text of a foreign file into results (one module for each kind of text), their
dimensions by a pattern of paths, and what becomes of both: environments, cells, repeats. What does not: walking through
folders and reading files (`app`), comparing (`pgstrata.compare`), and tables in pgstrata's own form
(`pgstrata.sources`).
"""
