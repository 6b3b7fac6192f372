"""A study and its comparisons rendered for people and programs: sentences, text, tables, JSON, HTML.

Pure: values in, text out. What was measured, how surely and why; nothing is claimed that a comparison does not say.
Statistics belong to `pgstrata.stats` and `pgstrata.compare`, files and printing to the callers.
"""
