"""The peak over numbers of clients: how often two environments with the same peak seem to differ, simulated.

One environment has the same throughput at each number of clients, the other has its peak at one of them. What both
reach is the same. Differences are found by the production rule: by the largest value of each block, and by the value at
the peak that the blocks before it have (`stats.peaks`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from figures import Figure
from machine_noise import Floats

from pgstrata.model.answer import Verdict
from pgstrata.model.plan import HORIZON
from pgstrata.stats.peaks import peak_values
from pgstrata.stats.rule import Decision, Rule, decide_many

STUDIES = 1000
BLOCKS = (12, HORIZON)
# SD of ln throughput; and what the second environment has at each number of clients, less than at its peak.
NOISE = 0.03
BELOW = np.array([[-0.5], [0.0], [-0.3], [-0.7]])
THRESHOLD = math.log1p(0.03)
SEED = 20261127
_DIFFERENT = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE})


def measure_peaks() -> Iterator[Figure]:
    """Shares of false differences; what the largest value would claim has no goal of its own."""
    for blocks in BLOCKS:
        rng = np.random.default_rng([SEED, blocks])
        largest, peak = [], []
        for _ in range(STUDIES):
            flat, steep = (rng.normal(0, NOISE, (len(BELOW), blocks)) + below for below in (0.0, BELOW))
            largest.append(flat.max(axis=0) - steep.max(axis=0))
            peak.append(peak_values(flat) - peak_values(steep))
        decided = _decide(peak)
        yield Figure(
            name=f"peaks: false, {blocks} blocks", value=_share(decided, _DIFFERENT), goal=5.0, unit="%",
            notes=(
                f"the flat curve seems better in {_share(decided, {Verdict.BETTER}):.1f} %",
                f"by the largest value of each block in {_share(_decide(largest), {Verdict.BETTER}):.1f} %",
            ),
        )  # fmt: skip


def _decide(samples: Sequence[Floats]) -> Sequence[Decision]:
    return decide_many(samples, [Rule(delta=THRESHOLD)] * len(samples))


def _share(decisions: Sequence[Decision], wanted: frozenset[Verdict] | set[Verdict]) -> float:
    """Percent with one of these verdicts."""
    return 100 * float(np.mean([decision.verdict in wanted for decision in decisions]))
