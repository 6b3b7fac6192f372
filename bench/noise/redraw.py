"""Comparisons made of recorded block differences: labels drawn anew within blocks, effects multiplied in, the rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from noise.recorded import Floats

from pgstrata.model.answer import Verdict
from pgstrata.model.floor import LEAST_DIFFERENCES
from pgstrata.stats.boundaries import MAX_BLOCKS
from pgstrata.stats.floor import MAD_TO_SD
from pgstrata.stats.rule import Rule, decide_many

DIFFERENT = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE})
EFFECTS = (0.02, 0.03, 0.05, 0.10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Comparisons without an effect: `d` of shape (count, blocks), `floors` of shape (count,), NaN for none."""

    d: Floats
    floors: Floats


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


def redraw(rng: np.random.Generator, d: Floats, count: int, blocks: int, floor_blocks: int) -> Draws:
    """Comparisons of `blocks` blocks in the order of recording, each block with labels drawn anew.

    Args:
        rng: generator.
        d: recorded block differences in the order of recording, shape (recorded,).
        count: comparisons.
        blocks: blocks of each, drawn without replacement.
        floor_blocks: blocks of those that are left, which give the noise floor; fewer than 12 give none.
    """
    order = np.argsort(rng.random((count, d.size)), axis=1)
    chosen = np.sort(order[:, :blocks], axis=1)
    floors = np.full(count, math.nan)
    if floor_blocks >= LEAST_DIFFERENCES:
        rest = np.abs(d[order[:, blocks : blocks + floor_blocks]])
        floors = np.asarray(MAD_TO_SD * np.median(rest, axis=1), dtype=np.float64)
    return Draws(d=d[chosen] * rng.choice([-1.0, 1.0], chosen.shape), floors=floors)


def default_threshold(d: Floats) -> float:
    """ln 1.03, and ln 1.05 where the floor of one run exceeds 2 %."""
    return math.log(1.05 if MAD_TO_SD * float(np.median(np.abs(d))) / math.sqrt(2) > 0.02 else 1.03)


def judge(draws: Draws, effect: float, delta: float) -> Outcome:
    """The sequential rule on all comparisons, the first arm better by `effect` (a share) in every second one, worse in
    the others."""
    count, blocks = draws.d.shape
    signs = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    shifted = draws.d + math.log1p(effect) * signs[:, np.newaxis]
    floors = [None if math.isnan(floor) else floor for floor in draws.floors.tolist()]
    rules = [Rule(delta=delta, floor=floor, last=min(blocks, MAX_BLOCKS)) for floor in floors]
    decisions = decide_many(list(shifted), rules)
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


def choose_design(recorded: int) -> tuple[int, int]:
    """Blocks of a comparison, and of its floor: 24 and 24, or 18 and 12 where too few were recorded."""
    return (MAX_BLOCKS, MAX_BLOCKS) if recorded >= 2 * MAX_BLOCKS else (18, LEAST_DIFFERENCES)
