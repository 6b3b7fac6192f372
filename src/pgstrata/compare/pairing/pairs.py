"""The pairs that a comparison is made of: two environments in one cell, or over all cells, block by block."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from pgstrata.compare.pairing.arms import Arm, Arms, find_arm
from pgstrata.compare.pairing.shared_blocks import Shared, align, over_rounds, shared_blocks
from pgstrata.model.answer import ALL_CELLS, Interval
from pgstrata.model.experiment import ControlKind
from pgstrata.model.question import Question
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.rule import LogInterval


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """One comparison to be made: what two environments have in the blocks in which both have it.

    `differences` are D, oriented so that above zero is better; `values` and `base_values` are the runs' own, `levels`
    and `base_levels` those that can be compared with other blocks of the same environment (`Arm.levels`), NaN where one
    has none. All have shape (blocks,). `apart` counts blocks whose runs were not measured together, `uneven`
    those, of all that count, in which other processes were beside one of them only.

    Of an environment that collapsed only the luckier runs are left, so that nothing is estimated where it collapsed and
    the baseline did not (`collapsed_in` names the cells), or the baseline did (`baseless`). Over several cells `arm`
    and `base` hold the sums, and `left_out` names the cells in which the baseline collapsed.

    Where nothing ties values to each other it is not `paired`: there are neither blocks nor differences, and `values`
    and `base_values` have shapes (n,) and (m,).
    """

    question: Question
    environment: str
    cell: str
    arm: Arm
    base: Arm
    values: FloatArray
    base_values: FloatArray
    blocks: tuple[int, ...] = ()
    differences: FloatArray = field(default_factory=lambda: np.empty(0))
    levels: FloatArray = field(default_factory=lambda: np.empty(0))
    base_levels: FloatArray = field(default_factory=lambda: np.empty(0))
    apart: int = 0
    uneven: int = 0
    collapsed_in: tuple[str, ...] = ()
    baseless: bool = False
    left_out: tuple[str, ...] = ()
    paired: bool = True

    @property
    def metric(self) -> str:
        """What it is compared by."""
        return self.question.metric

    @property
    def control(self) -> ControlKind | None:
        """What kind of control the environment is; None where it is none."""
        return self.question.controls.get(self.environment)

    @property
    def is_estimable(self) -> bool:
        """Whether an honest estimate can come of it."""
        return not (self.collapsed_in or self.baseless)

    @property
    def sample(self) -> FloatArray:
        """The differences to be judged, shape (n,): none where nothing may be estimated."""
        return self.differences if self.is_estimable else np.empty(0)

    def ratio(self, d: float) -> float:
        """An oriented log difference as value / baseline value."""
        return to_ratio(self.question.sign * d)

    def interval(self, span: LogInterval | None) -> Interval | None:
        """An oriented span as ratios, the lower first."""
        return to_interval(span, self.question.sign)


def to_ratio(d: float) -> float:
    """A log difference as a ratio; infinite where no float can hold it."""
    try:
        return math.exp(d)
    except OverflowError:
        return math.inf


def to_interval(span: LogInterval | None, sign: float = 1.0) -> Interval | None:
    """A span of log differences, times `sign`, as ratios, the lower first."""
    if span is None:
        return None
    low, high = sorted((to_ratio(sign * span.low), to_ratio(sign * span.high)))
    return Interval(low=low, high=high)


def pair_metric(arms: Arms, question: Question, environment: str, cell: str) -> Pairing:
    """One environment against the baseline in one cell, also where nothing was measured yet.

    A block is a pair if both environments have a completed run that is not invalid, with a finite value above zero;
    runs that took turns in slices only with those that they took turns with.
    """
    sides = find_arm(arms, environment, cell), find_arm(arms, question.baseline, cell)
    return _pair(question, environment, cell, sides, shared_blocks(sides))


def pair_loose(arms: Arms, question: Question, environment: str, cell: str) -> Pairing:
    """All values of one environment and the baseline in one cell that no block holds."""
    arm, base = find_arm(arms, environment, cell), find_arm(arms, question.baseline, cell)
    values, base_values = (np.array(side.loose.get(question.metric, ()), dtype=np.float64) for side in (arm, base))
    return Pairing(
        question=question,
        environment=environment,
        cell=cell,
        arm=arm,
        base=base,
        values=values,
        base_values=base_values,
        paired=False,
    )


def pair_cells(arms: Arms, question: Question, environment: str) -> list[Pairing]:
    """One environment against the baseline in each cell."""
    return [pair_metric(arms, question, environment, cell) for cell in question.cells]


def pair_all(arms: Arms, questions: Sequence[Question]) -> list[Pairing]:
    """As `pair_metric`, by environment, cell and question, in the order of the first question.

    By a metric of which neither of the environments has a measurement there is none.
    """
    first, found = questions[0], []
    for environment, cell in product(first.environments, first.cells):
        sides = find_arm(arms, environment, cell), find_arm(arms, first.baseline, cell)
        shared = shared_blocks(sides)
        known = [question for question in questions if any(question.metric in side.values for side in sides)]
        found += [_pair(question, environment, cell, sides, shared) for question in known]
    return found


def _pair(question: Question, environment: str, cell: str, sides: tuple[Arm, Arm], shared: Shared) -> Pairing:
    arm, base = sides
    metric = question.metric
    aligned = align(sides, metric, shared.blocks)
    d = question.sign * over_rounds(aligned.logs[0] - aligned.logs[1], aligned.least)
    known = np.flatnonzero(~np.isnan(d))
    blocks = tuple(aligned.blocks[place] for place in known.tolist())
    return Pairing(
        question=question,
        environment=environment,
        cell=cell,
        arm=arm,
        base=base,
        blocks=blocks,
        differences=d[known],
        values=_pick(arm.values.get(metric, {}), blocks),
        base_values=_pick(base.values.get(metric, {}), blocks),
        levels=_pick(arm.levels(metric), blocks),
        base_levels=_pick(base.levels(metric), blocks),
        apart=len(shared.apart),
        uneven=len(shared.uneven),
        collapsed_in=(cell,) if arm.has_collapsed and not base.has_collapsed else (),
        baseless=base.has_collapsed,
    )


def _pick(found: Mapping[int, float], blocks: Sequence[int]) -> FloatArray:
    return np.array([found.get(block, math.nan) for block in blocks], dtype=np.float64)


def over_cells(pairings: Sequence[Pairing]) -> Pairing:
    """One environment over all its cells: in each block the geometric mean of their ratios. Or its only cell.

    Only blocks with all cells count. Cells in which the baseline collapsed are left out of all blocks.

    Args:
        pairings: of one environment and metric, one for each cell.
    """
    first = pairings[0]
    if len(pairings) == 1:
        return first
    kept = [pairing for pairing in pairings if not pairing.baseless]
    blocks = sorted(set.intersection(*(set(pairing.blocks) for pairing in kept))) if kept else []
    places = [np.searchsorted(pairing.blocks, blocks) for pairing in kept]
    rows = list(zip(kept, places, strict=True))
    return Pairing(
        question=first.question,
        environment=first.environment,
        cell=ALL_CELLS,
        arm=_sum_arms([pairing.arm for pairing in pairings]),
        base=_sum_arms([pairing.base for pairing in pairings]),
        blocks=tuple(blocks),
        differences=_mean([pairing.differences[place] for pairing, place in rows]),
        values=np.exp(_mean([np.log(pairing.values[place]) for pairing, place in rows])),
        base_values=np.exp(_mean([np.log(pairing.base_values[place]) for pairing, place in rows])),
        levels=np.exp(_mean([np.log(pairing.levels[place]) for pairing, place in rows])),
        base_levels=np.exp(_mean([np.log(pairing.base_levels[place]) for pairing, place in rows])),
        apart=max(pairing.apart for pairing in pairings),
        uneven=max(pairing.uneven for pairing in pairings),
        collapsed_in=tuple(pairing.cell for pairing in kept if pairing.collapsed_in),
        baseless=not kept,
        left_out=tuple(pairing.cell for pairing in pairings if pairing.baseless),
    )


def _mean(rows: Sequence[FloatArray]) -> FloatArray:
    """Over cells: shape (blocks,) of as many rows."""
    return np.asarray(np.mean(rows, axis=0), dtype=np.float64) if rows else np.empty(0)


def _sum_arms(arms: Sequence[Arm]) -> Arm:
    """What became of the runs in all cells; `blocks` are those with a run in each."""
    return Arm(
        name=arms[0].name,
        made=sum(arm.made for arm in arms),
        invalid=sum(arm.invalid for arm in arms),
        collapsed=sum(arm.collapsed for arm in arms),
        suspect=sum(arm.suspect for arm in arms),
        blocks=set.intersection(*(arm.blocks for arm in arms)),
    )


def median(values: FloatArray) -> float | None:
    """Median of what is not NaN, shape (n,), None without any; several times faster than numpy's on a few dozens."""
    ascending = sorted(value for value in values.tolist() if not math.isnan(value))
    if not ascending:
        return None
    low, high = ascending[(len(ascending) - 1) // 2], ascending[len(ascending) // 2]
    middle = (low + high) / 2
    return float(middle if middle < math.inf else low / 2 + high / 2)
