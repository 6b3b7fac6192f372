"""Comparisons made of recorded block differences: labels drawn anew within blocks, effects multiplied in, the rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from noise.recorded import Floats

from pgstrata.model.answer import Verdict
from pgstrata.model.plan import HORIZON
from pgstrata.stats.floor import MAD_TO_SD
from pgstrata.stats.rule import Rule, decide_many

DIFFERENT = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE})
EFFECTS = (0.02, 0.03, 0.05, 0.10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Shares in percent, and mean blocks until a decision or the end."""

    different: float
    right: float
    equivalent: float
    blocks: float
    count: int

    def text(self) -> str:
        """For a note, where an effect was multiplied in."""
        return f"found {self.right:.1f} %, wrong sign {self.different - self.right:.2f} %, {self.blocks:.1f} blocks"


def redraw(rng: np.random.Generator, d: Floats, count: int, blocks: int) -> Floats:
    """Comparisons of `blocks` blocks in the order of recording, each block with labels drawn anew.

    Args:
        rng: generator.
        d: recorded block differences in the order of recording, shape (recorded,).
        count: comparisons.
        blocks: blocks of each, drawn without replacement.

    Returns:
        Differences without an effect, shape (count, blocks).
    """
    order = np.argsort(rng.random((count, d.size)), axis=1)
    chosen = np.sort(order[:, :blocks], axis=1)
    return np.asarray(d[chosen] * rng.choice([-1.0, 1.0], chosen.shape), dtype=np.float64)


def default_threshold(d: Floats) -> float:
    """ln 1.03, and ln 1.05 where the floor of one run exceeds 2 %."""
    return math.log(1.05 if MAD_TO_SD * float(np.median(np.abs(d))) / math.sqrt(2) > 0.02 else 1.03)


def judge(draws: Floats, effect: float, delta: float) -> Outcome:
    """The sequential rule on all comparisons, the first arm better by `effect` (a share) in every second one, worse in
    the others."""
    count, blocks = draws.shape
    signs = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    shifted = draws + math.log1p(effect) * signs[:, np.newaxis]
    decisions = decide_many(list(shifted), [Rule(delta=delta, last=min(blocks, HORIZON))] * count)
    different = np.array([decision.verdict in DIFFERENT for decision in decisions])
    centres = np.array([decision.estimate.centre if decision.estimate else 0.0 for decision in decisions])
    return Outcome(
        different=100 * float(different.mean()),
        right=100 * float((different & (centres * signs > 0)).mean()),
        equivalent=100 * float(np.mean([decision.verdict is Verdict.EQUIVALENT for decision in decisions])),
        blocks=float(np.mean([decision.n for decision in decisions])),
        count=count,
    )


def pool(outcomes: Sequence[Outcome]) -> Outcome:
    """All comparisons together."""
    weights = np.array([outcome.count for outcome in outcomes], dtype=np.float64)

    def mean(values: Sequence[float]) -> float:
        return float(np.average(values, weights=weights))

    return Outcome(
        different=mean([outcome.different for outcome in outcomes]),
        right=mean([outcome.right for outcome in outcomes]),
        equivalent=mean([outcome.equivalent for outcome in outcomes]),
        blocks=mean([outcome.blocks for outcome in outcomes]),
        count=int(weights.sum()),
    )


def choose_blocks(recorded: int) -> int:
    """Blocks of a comparison: all of the horizon, or as many as were recorded."""
    return min(HORIZON, recorded)
