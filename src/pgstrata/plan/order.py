"""The order of everything: blocks, visits, stages, runs, drawn from the seed."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Sequence
from typing import TypeVar

from pgstrata.model.experiment import Cell, Environment, Experiment, Order
from pgstrata.model.plan import Block, Design, PlannedRun, Stage, Visit

_T = TypeVar("_T")


def lay_out(experiment: Experiment, designs: Sequence[Design], number: int) -> Block:
    """Every environment once in each cell: those in slices in one visit, the others one visit after the other."""
    together = {design.cell for design in designs if design.sliced}
    visits = list(_turns(experiment, number, together))
    if together:
        source = random.Random(derive_seed(experiment.seed, number, "slices"))  # noqa: S311 - an order, not a secret
        visits.insert(source.randint(0, len(visits)), _slices(experiment, number, together))
    return Block(number=number, visits=tuple(visits))


def _turns(experiment: Experiment, number: int, together: Collection[str]) -> tuple[Visit, ...]:
    """One visit for each environment; within it its cells, one run each."""
    visits: list[Visit] = []
    alone = tuple(cell for cell in experiment.cells if cell.identity not in together)
    if not alone:
        return ()
    for environment in _shuffled(experiment.environments, experiment.seed, number, "environments"):
        cells = _in_order(experiment, alone, number, "cells", environment.name)
        stages = tuple(_stage(experiment, number, (environment,), cell) for cell in cells)
        identity = f"b{number:02d}/{environment.name}"
        visits.append(Visit(identity=identity, residents=(environment.name,), stages=stages))
    return tuple(visits)


def _slices(experiment: Experiment, number: int, together: Collection[str]) -> Visit:
    """One visit with all environments up; for each cell one run for each of them, in random order."""
    cells = tuple(cell for cell in experiment.cells if cell.identity in together)
    stages = []
    for cell in _in_order(experiment, cells, number, "cells"):
        order = _shuffled(experiment.environments, experiment.seed, number, "environments", cell.identity)
        stages.append(_stage(experiment, number, order, cell))
    residents = tuple(environment.name for environment in experiment.environments)
    return Visit(identity=f"b{number:02d}", residents=residents, stages=tuple(stages))


def _stage(experiment: Experiment, number: int, order: Sequence[Environment], cell: Cell) -> Stage:
    # The arms of a block share the seed of the client, so that they ask for the same rows.
    seed = derive_seed(experiment.seed, number, "client", cell.identity) % 2**31
    runs = tuple(
        PlannedRun(
            identity=f"b{number:02d}/{environment.name}/{cell.identity}",
            block=number,
            environment=environment.name,
            cell=cell.identity,
            seed=seed,
        )
        for environment in order
    )
    return Stage(cell=cell.identity, runs=runs)


def _in_order(experiment: Experiment, cells: Sequence[Cell], *source: object) -> tuple[Cell, ...]:
    """Random from the seed; where the load is to rise, fewer clients first, and random among as many."""
    shuffled = _shuffled(cells, experiment.seed, *source)
    if experiment.order is Order.RISING:
        return tuple(sorted(shuffled, key=lambda cell: cell.clients))
    return shuffled


def _shuffled(items: Sequence[_T], *source: object) -> tuple[_T, ...]:
    result = list(items)
    random.Random(derive_seed(*source)).shuffle(result)  # noqa: S311 - an order of runs, not a secret
    return tuple(result)


def derive_seed(*source: object) -> int:
    """An integer from texts and numbers: SHA-256, so that it is the same everywhere.

    Python's own hash differs between processes. `Random(int).shuffle` has given the same order since Python 3.2, and a
    test pins one.
    """
    text = "/".join(str(part) for part in source)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
