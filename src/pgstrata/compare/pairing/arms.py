"""Observations by arm: what each environment did in each cell, and its values by block, ready to be compared."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pgstrata.model.metrics import BACKGROUND_LOAD, TPS
from pgstrata.model.observation import Observation
from pgstrata.model.runs import RunRecord, Validity
from pgstrata.sources.runs import COMPANIONS, observe_runs
from pgstrata.stats.ranks import FloatArray

SETTLED_RUNS: Final = 3
"""Runs from which on a collapse ends the measuring."""


@dataclass(slots=True, kw_only=True)
class Arm:
    """The observations of one environment in one cell, by what became of them; those of experiments are runs.

    `blocks` are those of all runs; `tokens` hold `RunRecord.together` by block for the runs that may enter an estimate;
    `values`, by metric and block, only what a logarithm can be taken of; `rounds`, by block, tps of each round of
    slices, shape (rounds,); `background_load`, by block, is the share of the CPUs that other processes used;
    `companions` are what happened beside the runs, by metric; `openings` are by how much the first seconds of runs
    differed from the rest. `loose`, by metric, are values that no block holds, in the order of their source.
    """

    name: str
    made: int = 0
    invalid: int = 0
    collapsed: int = 0
    suspect: int = 0
    blocks: set[int] = field(default_factory=set)
    tokens: dict[int, str] = field(default_factory=dict)
    values: dict[str, dict[int, float]] = field(default_factory=dict)
    rounds: dict[int, FloatArray] = field(default_factory=dict)
    background_load: dict[int, float] = field(default_factory=dict)
    companions: dict[str, list[float]] = field(default_factory=dict)
    openings: list[float] = field(default_factory=list)
    loose: dict[str, list[float]] = field(default_factory=dict)

    @property
    def has_collapsed(self) -> bool:
        """Whether most runs collapsed: of such an environment only the luckier runs are left to compare."""
        return 2 * self.collapsed > self.made

    @property
    def is_closed(self) -> bool:
        """Whether it collapsed in so many runs that measuring goes on without it."""
        return self.has_collapsed and self.made >= SETTLED_RUNS

    def levels(self, metric: str) -> dict[int, float]:
        """Values by block that can be compared with those of other blocks.

        Of throughput, of a run that took turns the median of its rounds, because its throughput is that of a short
        unlogged stretch before them.
        """
        values = self.values.get(metric, {})
        if metric != TPS.name:
            return dict(values)
        medians = {block: np.median(rounds[rounds > 0]) for block, rounds in self.rounds.items() if (rounds > 0).any()}
        return {**values, **{block: float(value) for block, value in medians.items()}}


Arms = Mapping[tuple[str, str], Arm]
"""Arms by environment and cell."""


_sorted: deque[tuple[tuple[RunRecord, ...], frozenset[str], Arms]] = deque(maxlen=2)
"""The last two results: the parts of an answer sort the same runs, most of them for few metrics."""


def sort_runs(runs: Sequence[RunRecord], metrics: frozenset[str]) -> Arms:
    """Runs by environment and cell, as `sort_observations`. The result may hold more metrics than asked for.

    Callers share it, so they must not change it.
    """
    for known, of, arms in tuple(_sorted):
        # rounds and openings are there only if throughput is asked for
        if known is runs and of >= metrics and (TPS.name in of) is (TPS.name in metrics):
            return arms
    arms = sort_observations(observe_runs(runs, metrics))
    if isinstance(runs, tuple):
        _sorted.append((runs, metrics, arms))
    return arms


def sort_observations(observations: Iterable[Observation]) -> dict[tuple[str, str], Arm]:
    """Observations by target and cell.

    Raises:
        ValueError: a target was observed twice in one cell of one block.
    """
    arms: dict[tuple[str, str], Arm] = {}
    for observation in observations:
        key = (observation.target, observation.cell)
        if key not in arms:
            arms[key] = Arm(name=observation.target)
        _add(arms[key], observation)
    return arms


def _add(arm: Arm, observation: Observation) -> None:
    key = observation.key
    if key is None:
        _add_loose(arm, observation)
        return
    block = key.number
    if block in arm.blocks:
        raise ValueError(f"two runs of {arm.name} in block {key.label}, cell {observation.cell}")
    arm.blocks.add(block)
    arm.made += 1
    if observation.collapsed:
        arm.collapsed += 1
        return
    if observation.validity is Validity.INVALID:
        arm.invalid += 1
        return
    arm.suspect += observation.validity is Validity.SUSPECT
    arm.tokens[block] = key.together
    if observation.opening is not None:
        arm.openings.append(observation.opening)
    for metric, value in observation.measurements.items():
        if metric == BACKGROUND_LOAD:
            arm.background_load[block] = value
        if metric in COMPANIONS:
            arm.companions.setdefault(metric, []).append(value)
        if 0 < value < math.inf:
            arm.values.setdefault(metric, {})[block] = value
    if observation.rounds is not None:
        arm.rounds[block] = np.array(observation.rounds, dtype=np.float64)


def _add_loose(arm: Arm, observation: Observation) -> None:
    """One that no block holds."""
    arm.made += 1
    if observation.validity is Validity.INVALID:
        arm.invalid += 1
        return
    arm.suspect += observation.validity is Validity.SUSPECT
    if observation.opening is not None:
        arm.openings.append(observation.opening)
    for metric, value in observation.measurements.items():
        arm.loose.setdefault(metric, []).append(value)


def find_arm(arms: Arms, environment: str, cell: str) -> Arm:
    """The arm, empty where nothing was measured yet."""
    return arms.get((environment, cell)) or Arm(name=environment)
