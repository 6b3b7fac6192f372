"""Ordered axes: which level (version, kernel, size) brought the change, and is there a trend.

What belongs here: a test for steps along levels in their order, of few repeats, in blocks or without. The labels of a
block are exchangeable within it if nothing depends on the level, whatever the machine does between blocks: p comes
from permuting them, so that no distribution is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, permutations
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.stats.ranks import TIE, FloatArray, IndexArray, hodges_lehmann, midranks
from pgstrata.stats.rule import Rule, Span, decide_once

LEVEL: Final = 0.05
PERMUTATIONS: Final = 4999
SEED: Final = 1963
_ROUNDING: Final = 1e-9
# Beyond these Page's statistic is close to normal, and counting would take long.
_EXACT_LEVELS: Final = 8
_EXACT_BLOCKS: Final = 30
