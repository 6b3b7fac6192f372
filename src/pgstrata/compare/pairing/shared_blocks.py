"""Values of several arms side by side: which blocks they share, and the logarithms of what they have there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.compare.pairing.arms import Arm
from pgstrata.model.guards import MUCH_BACKGROUND_LOAD
from pgstrata.model.metrics import TPS
from pgstrata.stats.ranks import FloatArray

MIN_ROUNDS: Final = 2
"""Rounds below which a block in slices has no difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Blocks in which all of some arms have a run that may enter, measured together or each alone.

    `apart` are those in which some took turns in slices and others did not, or with others: no honest difference comes
    from runs that were hours apart. An interruption in the middle of a block leaves such.

    `uneven` are those of `blocks` with background load beside some only. They count: random order makes that load as
    likely beside either, while how much CPU others get depends on what an environment leaves to them, so that leaving
    such blocks out would select by the result. Environments that take turns in slices have the same background load.
    """

    blocks: tuple[int, ...]
    apart: tuple[int, ...]
    uneven: tuple[int, ...]


def shared_blocks(arms: Sequence[Arm]) -> Shared:
    """What the arms share; at least one arm."""
    first, *others = arms
    blocks: list[int] = []
    apart: list[int] = []
    uneven: list[int] = []
    for block in sorted(first.tokens):
        if not all(block in other.tokens for other in others):
            continue
        token = first.tokens[block]
        if any(other.tokens[block] != token for other in others):
            apart.append(block)
            continue
        blocks.append(block)
        if not token and _background_differs(arms, block):
            uneven.append(block)
    return Shared(blocks=tuple(blocks), apart=tuple(apart), uneven=tuple(uneven))


def _background_differs(arms: Sequence[Arm], block: int) -> bool:
    known = [arm.background_load[block] for arm in arms if block in arm.background_load]
    return len(known) > 1 and max(known) - min(known) > MUCH_BACKGROUND_LOAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """One metric of several arms in their shared blocks.

    `logs` are ln of the values, shape (arms, blocks, rounds), NaN where there is none: one round for each run that was
    alone, the rounds of slices for tps of runs that took turns. `least` are the rounds that a block needs, shape
    (blocks,).
    """

    blocks: tuple[int, ...]
    logs: FloatArray
    least: FloatArray


def align(arms: Sequence[Arm], metric: str, blocks: Sequence[int]) -> Aligned:
    """The values in `blocks`, which the arms have to share; blocks where an arm has none at all are left out."""
    if metric == TPS.name and any(arms[0].tokens[block] for block in blocks):
        return _align_rounds(arms, blocks)
    found = [arm.values.get(metric, {}) for arm in arms]
    used = tuple(block for block in blocks if all(block in values for values in found))
    values = np.array([[values[block] for block in used] for values in found], dtype=np.float64)
    return Aligned(blocks=used, logs=np.log(values)[..., np.newaxis], least=np.ones(len(used)))


def _align_rounds(arms: Sequence[Arm], blocks: Sequence[int]) -> Aligned:
    """tps round by round; shorter rows end in NaN, and so is what has no logarithm."""
    rows = [[_rounds_of(arm, block) for arm in arms] for block in blocks]
    # Arms of one visit hold the same rounds: where they do not, nobody knows which belong together.
    good = [place for place, row in enumerate(rows) if row[0].size and len({values.size for values in row}) == 1]
    width = max((rows[place][0].size for place in good), default=1)
    values = np.full((len(arms), len(good), width), np.nan)
    for target, place in enumerate(good):
        values[:, target, : rows[place][0].size] = rows[place]
    known = (values > 0) & (values < np.inf)
    logs = np.log(values, out=np.full_like(values, np.nan), where=known)
    used = tuple(blocks[place] for place in good)
    least = [MIN_ROUNDS if arms[0].tokens[block] else 1 for block in used]
    return Aligned(blocks=used, logs=logs, least=np.array(least, dtype=np.float64))


def _rounds_of(arm: Arm, block: int) -> FloatArray:
    if arm.tokens[block]:
        return arm.rounds[block]
    value = arm.values.get(TPS.name, {}).get(block)
    return np.empty(0) if value is None else np.array([value])


def whole_rounds(arms: Sequence[Arm], block: int) -> FloatArray:
    """tps of the rounds of a block that all arms have, shape (arms, rounds); none where they do not hold the same."""
    rounds = [arm.rounds.get(block, np.empty(0)) for arm in arms]
    if len({found.size for found in rounds}) > 1:
        return np.empty((len(arms), 0))
    values = np.array(rounds)
    return values[:, ((values > 0) & (values < np.inf)).all(axis=0)]


def over_rounds(differences: FloatArray, least: FloatArray) -> FloatArray:
    """Median along the last axis over what is not NaN: one difference of a block from those of its rounds.

    It changes its sign exactly where the differences do.

    Args:
        differences: shape (..., blocks, rounds), with at least one round.
        least: rounds that a block needs, shape (blocks,).

    Returns:
        Shape (..., blocks), NaN where fewer rounds than needed are left.
    """
    ascending = np.sort(differences, axis=-1)  # NaN comes last
    count = (~np.isnan(ascending)).sum(axis=-1, keepdims=True)
    low = np.take_along_axis(ascending, np.maximum(count - 1, 0) // 2, axis=-1)
    high = np.take_along_axis(ascending, np.minimum(count // 2, ascending.shape[-1] - 1), axis=-1)
    median = (low[..., 0] + high[..., 0]) / 2
    return np.asarray(np.where(count[..., 0] >= least, median, np.nan), dtype=np.float64)
