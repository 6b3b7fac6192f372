"""Several comparisons at once: headlines with Holm's step-down while stopping, p values of cells.

Sources: Holm 1979 (step-down); Jennison & Turnbull 1999, chapter 9 (repeated intervals stay valid at any stopping
time, hence so does Holm's procedure on them); Benjamini & Hochberg 1995.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pgstrata.stats.boundaries import C_EQ, Boundary, boundary
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.rule import FAST_ALPHA, Decision, Rule, check_samples, make_decisions
from pgstrata.stats.sequence import BoolArray, Looks, critical_row, fast_crossings, look_at_all


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The differences of one comparison with the numbers of their blocks, ascending; d has shape (len(blocks),)."""

    blocks: tuple[int, ...]
    d: FloatArray
