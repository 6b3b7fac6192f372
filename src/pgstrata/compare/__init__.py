"""Observations to comparisons: pairs by block, verdicts, what is open still, and the doubts that travel with them.

What belongs here: which observations are paired, in which orientation, what has to be said about those that are not,
what the loop still has to measure, and which observed differences between environments nobody declared. What does not:
where observations come from (`pgstrata.sources`), the formulas (`pgstrata.stats`), the words of verdicts and their
layout (`pgstrata.report`).

What is asked of a whole study or import has a file here: `study`, `one_look`, `merged`, `progress`, `anomalies`,
`shifts`, `cpu`, `trends`, `gate`. Rooms hold what they are made of: `pairing`, `verdicts`, and beside these `factors`,
`environments`, `noise`, `causes`.
"""

from pgstrata.compare.environments.differences import exclusive_settings, is_volatile, undeclared_differences
from pgstrata.compare.factors.axes import find_axes
from pgstrata.compare.factors.effects import find_effects
from pgstrata.compare.progress import open_pairs
from pgstrata.compare.shifts import find_shifts
from pgstrata.compare.study import SECONDARY_METRICS, compare_observations, compare_pairs, compare_study
from pgstrata.compare.verdicts.judging import threshold_of

__all__ = [
    "SECONDARY_METRICS",
    "compare_observations",
    "compare_pairs",
    "compare_study",
    "exclusive_settings",
    "find_axes",
    "find_effects",
    "find_shifts",
    "is_volatile",
    "open_pairs",
    "threshold_of",
    "undeclared_differences",
]
