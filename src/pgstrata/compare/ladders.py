"""Ladders of clients that end where throughput falls: their cells, and the step at which those of a study ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pgstrata.compare.by_load import find_curves
from pgstrata.model.experiment import Cell, Experiment
from pgstrata.model.study import Study
from pgstrata.sources.rates import maximum_key

FALL: Final = 0.1
"""Share of its best throughput that an environment has lost where its ladder ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderEnd:
    """How far clients were added until throughput fell.

    `cells` are those that are measured, the fewest clients first, `beyond` those left out. `climbed` are transactions
    per second by environment (its name) and number of clients, as they were before the first block; an environment that
    fell before the others was not climbed any further.
    """

    cells: tuple[Cell, ...]
    beyond: tuple[Cell, ...]
    climbed: Mapping[str, Mapping[int, float]]

    @property
    def fallen(self) -> bool:
        """Whether throughput fell in every environment; if not, the ladder ends because it has no further step."""
        return all(has_fallen(rates[max(rates)], max(rates.values())) for rates in self.climbed.values())


def has_fallen(tps: float, best: float) -> bool:
    """Whether an environment has lost `FALL` of its best throughput."""
    return tps < (1 - FALL) * best


def find_ladders(experiment: Experiment) -> tuple[tuple[Cell, ...], ...]:
    """Curves over clients that are to end where throughput falls, the fewest clients first."""
    return tuple(curve for curve in find_curves(experiment, fewest=1) if curve[0].until_falls)


def find_ladder_ends(study: Study) -> tuple[LadderEnd, ...]:
    """How far the ladders of a study go, in the order of its cells; none before they were climbed."""
    experiment = study.plan.experiment
    whole = replace(experiment, cells=(*experiment.cells, *study.beyond))
    ends = (_end(study, ladder) for ladder in find_ladders(whole))
    return tuple(end for end in ends if all(end.climbed.values()))


def _end(study: Study, ladder: Sequence[Cell]) -> LadderEnd:
    cells = tuple(cell for cell in ladder if cell not in study.beyond)
    names = [each.name for each in study.plan.experiment.environments]
    keys = {name: {cell.clients: maximum_key(name, cell) for cell in cells} for name in names}
    climbed = {
        name: {clients: study.maxima[key] for clients, key in known.items() if key in study.maxima}
        for name, known in keys.items()
    }
    return LadderEnd(cells=cells, beyond=tuple(ladder[len(cells) :]), climbed=climbed)
