"""Measurements to comparisons: pairs by block, verdicts in each cell, and the doubts that travel with them.

What belongs here: which runs enter an estimate, in which orientation, what has to be said about those that do not, and
which observed differences between environments nobody declared. What does not: the formulas (`pgstrata.stats`), the
words of verdicts and their layout (`pgstrata.report`).
"""

from pgstrata.compare.cells import SECONDARY_METRICS, compare_study
from pgstrata.compare.differences import exclusive_settings, is_volatile, undeclared_differences
from pgstrata.compare.pairs import client_share

__all__ = [
    "SECONDARY_METRICS",
    "client_share",
    "compare_study",
    "exclusive_settings",
    "is_volatile",
    "undeclared_differences",
]
