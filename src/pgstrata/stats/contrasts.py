"""Crossed factors: main effects and interactions as one difference per block, for the rule that judges all others.

"Does the effect of huge pages depend on the kernel?" is the contrast ln (A1 / B1) - ln (A2 / B2) of the four
environments in each block (Box, Hunter & Hunter 2005, chapter 5).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from pgstrata.stats.family import DifferenceSeries

_CROSSED: Final = 2

Place = tuple[str, ...]
"""The levels of an environment, one for each factor in order."""

Logs = Mapping[str, Mapping[int, float]]
"""By environment, then by block: ln of the value, oriented so that more is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelChange:
    """One factor's change from one level to another."""

    factor: str
    level: str
    against: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A main effect (one change) or an interaction (two), as differences per block."""

    changes: tuple[LevelChange, ...]
    series: DifferenceSeries

    @property
    def is_interaction(self) -> bool:
        return len(self.changes) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Design:
    factors: tuple[str, ...]
    names: Mapping[Place, str]
    base: Place
    logs: Logs


def make_contrasts(environments: Mapping[str, Mapping[str, str]], logs: Logs, *, baseline: str) -> tuple[Contrast, ...]:
    """Main effects and two-way interactions against the levels of the baseline, in the order of factors and levels.

    A main effect is the mean of ln value at a level minus that at the baseline's level, over the combinations of the
    other factors; an interaction is the difference of two such effects. A contrast needs the same combinations on all
    its sides, because otherwise it would mix in the effects of other factors; and at least two, for a main effect that
    is not simply the comparison of two environments. One that these environments do not support is left out. A block
    counts if all environments of the contrast have a value.

    Args:
        environments: levels by factor, by environment, without controls; a factor that is not given is one level.
        logs: what was measured; environments may be missing.
        baseline: name of the baseline.

    Returns:
        Nothing where fewer than two factors vary.

    Raises:
        ValueError: two environments have the same levels, or the baseline is not among them.
    """
    design = _make_design(environments, logs, baseline)
    if len(design.factors) < _CROSSED:
        return ()
    changes = [_changes(design, place) for place in range(len(design.factors))]
    wanted: list[tuple[LevelChange, ...]] = [(change,) for of_factor in changes for change in of_factor]
    for first, second in combinations(changes, 2):
        wanted += [(one, other) for one in first for other in second]
    return tuple(contrast for each in wanted if (contrast := _make_contrast(design, each)) is not None)


def _make_design(environments: Mapping[str, Mapping[str, str]], logs: Logs, baseline: str) -> _Design:
    if baseline not in environments:
        raise ValueError(f"the baseline {baseline} is not among the environments")
    named = dict.fromkeys(factor for levels in environments.values() for factor in levels)
    varied = tuple(factor for factor in named if len({levels.get(factor, "") for levels in environments.values()}) > 1)
    names: dict[Place, str] = {}
    for name, levels in environments.items():
        place = tuple(levels.get(factor, "") for factor in varied)
        if place in names:
            raise ValueError(f"{names[place]} and {name} have the same levels")
        names[place] = name
    base = next(place for place, name in names.items() if name == baseline)
    return _Design(factors=varied, names=names, base=base, logs=logs)


def _changes(design: _Design, factor: int) -> list[LevelChange]:
    levels = dict.fromkeys(place[factor] for place in design.names)
    against = design.base[factor]
    return [
        LevelChange(factor=design.factors[factor], level=level, against=against) for level in levels if level != against
    ]


def _make_contrast(design: _Design, changes: tuple[LevelChange, ...]) -> Contrast | None:
    """The mean over the combinations of the other factors, each side with its sign; None where they do not allow it."""
    moved = [design.factors.index(change.factor) for change in changes]
    sides: list[tuple[float, dict[str, str]]] = [(1.0, {})]
    for change in changes:
        sides = [
            (sign * factor, {**levels, change.factor: level})
            for sign, levels in sides
            for factor, level in ((1.0, change.level), (-1.0, change.against))
        ]
    others = [_combinations(design, moved, levels) for _, levels in sides]
    if any(side.keys() != others[0].keys() for side in others) or (len(moved) == 1 and len(others[0]) == 1):
        return None
    weights = {name: sign / len(side) for (sign, _), side in zip(sides, others, strict=True) for name in side.values()}
    return Contrast(changes=changes, series=_make_series(design.logs, weights))


def _combinations(design: _Design, moved: list[int], levels: Mapping[str, str]) -> dict[Place, str]:
    """Environments at these levels of the moved factors, by their levels of the others."""
    return {
        tuple(level for factor, level in enumerate(place) if factor not in moved): name
        for place, name in design.names.items()
        if all(place[factor] == levels[design.factors[factor]] for factor in moved)
    }


def _make_series(logs: Logs, weights: Mapping[str, float]) -> DifferenceSeries:
    """The weighted sum in each block in which all environments have a finite value."""
    values = [{block: x for block, x in logs.get(name, {}).items() if math.isfinite(x)} for name in weights]
    blocks = sorted(set.intersection(*(set(of_environment) for of_environment in values)))
    matrix = np.array([[of_environment[block] for of_environment in values] for block in blocks], dtype=np.float64)
    d = matrix.reshape(len(blocks), len(values)) @ np.array(list(weights.values()))
    return DifferenceSeries(blocks=tuple(blocks), d=np.asarray(d, dtype=np.float64))
