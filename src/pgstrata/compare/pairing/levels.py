"""What several environments have in each block on one scale: for contrasts of factors and for ordered axes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from pgstrata.compare.pairing.arms import Arm, Arms, find_arm
from pgstrata.compare.pairing.shared_blocks import MIN_ROUNDS, whole_rounds
from pgstrata.model.metrics import TPS


def read_levels(
    arms: Arms, metric: str, environments: Sequence[str], cells: Sequence[str]
) -> dict[str, dict[int, float]]:
    """The metric of each environment by block, not oriented.

    Over several cells it is the mean of the logarithms, in the blocks in which an environment has every cell. Of runs
    in slices it is the median over the rounds of what an environment had above or below the mean of all in that round:
    differences between environments are free of what the machine did to all of them, as in every comparison.

    Args:
        arms: the observations.
        metric: its name.
        environments: names; those without any run in a block are missing there.
        cells: identities.
    """
    parts = [_read_cell(arms, environments, cell, metric) for cell in cells]
    return {
        name: {
            block: sum(part[name][block] for part in parts) / len(parts)
            for block in sorted(set.intersection(*(set(part[name]) for part in parts)))
        }
        for name in environments
    }


def _read_cell(arms: Arms, environments: Sequence[str], cell: str, metric: str) -> dict[str, dict[int, float]]:
    sides = [find_arm(arms, name, cell) for name in environments]
    # Of an environment that collapsed only the luckier runs are left.
    sides = [side for side in sides if not side.has_collapsed]
    found: dict[str, dict[int, float]] = {name: {} for name in environments}
    for block in sorted(set().union(*(side.tokens for side in sides))):
        present = [side for side in sides if block in side.tokens]
        # What was measured apart after an interruption shares no scale with the others.
        token, _ = Counter(side.tokens[block] for side in present).most_common(1)[0]
        together = [side for side in present if side.tokens[block] == token]
        sliced = token and metric == TPS.name
        values = _read_rounds(together, block) if sliced else _read_values(together, metric, block)
        for name, value in values.items():
            found[name][block] = value
    return found


def _read_values(sides: Sequence[Arm], metric: str, block: int) -> dict[str, float]:
    known = [side for side in sides if block in side.values.get(metric, {})]
    return {side.name: float(np.log(side.values[metric][block])) for side in known}


def _read_rounds(sides: Sequence[Arm], block: int) -> dict[str, float]:
    whole = whole_rounds(sides, block)
    if whole.shape[1] < MIN_ROUNDS:
        return {}
    logs = np.log(whole)
    above = np.median(logs - logs.mean(axis=0), axis=1)
    return {side.name: float(value) for side, value in zip(sides, above, strict=True)}
