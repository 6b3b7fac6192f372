"""Results of other tools as observations: output of load generators in folders, tables, JSON, histories.

This package parses the text of a foreign file into results (one module for each kind of text), finds their dimensions
by a pattern of paths, and makes environments, cells and repeats of both. Finding and reading files belongs to `app`,
comparing to `pgstrata.compare`, and tables in pgstrata's own format to `pgstrata.sources`.
"""
