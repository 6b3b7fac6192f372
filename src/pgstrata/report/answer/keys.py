"""Keys by which comparisons of a study are selected and sorted: factors, and what tells cells apart."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pgstrata.model.experiment import Environment, Experiment

CELL_KEYS: Final = ("workload", "scale", "clients")
"""Keys of cells. A factor of the same name takes precedence."""


class SortKey(StrEnum):
    """What the rows of a list of comparisons are sorted by."""

    EFFECT = "effect"
    NAME = "name"
    CELL = "cell"


def factors_of(experiment: Experiment) -> tuple[str, ...]:
    """Those that environments have levels of, whether they are crossed or listed."""
    return tuple(dict.fromkeys(level.factor for each in experiment.environments for level in each.levels))


def keys_of(experiment: Experiment) -> tuple[str, ...]:
    """Factors, then keys of cells; each once."""
    return tuple(dict.fromkeys((*factors_of(experiment), *CELL_KEYS)))


def is_of_cells(key: str, experiment: Experiment) -> bool:
    """Whether a key tells cells apart, not environments."""
    return key in CELL_KEYS and key not in factors_of(experiment)


def levels_of(key: str, experiment: Experiment) -> tuple[str, ...]:
    """Levels of a key in the order of the experiment, each once."""
    if is_of_cells(key, experiment):
        found = [str(getattr(cell, key)) for cell in experiment.cells]
    else:
        found = [level for each in experiment.environments if (level := level_of(each, key)) is not None]
    return tuple(dict.fromkeys(found))


def level_of(environment: Environment, key: str) -> str | None:
    """The level of a factor in an environment; None where it has none."""
    return next((level.value for level in environment.levels if level.factor == key), None)
