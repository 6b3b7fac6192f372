"""The order of everything: blocks, visits, stages, runs, drawn from the seed."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Sequence
from typing import TypeVar

from pgstrata.model.boot import booted_hosts, group_of
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
    """One visit for each environment, or for each boot; within it the cells of each environment, one run each."""
    alone = tuple(cell for cell in experiment.cells if cell.identity not in together)
    if not alone:
        return ()
    order = _shuffled(experiment.environments, experiment.seed, number, "environments")
    return tuple(_turn(experiment, number, group, alone) for group in _grouped(experiment, number, order))


def _grouped(experiment: Experiment, number: int, order: Sequence[Environment]) -> Sequence[Sequence[Environment]]:
    """One group for each environment, or on machines that are booted, one for all that ask for the same boot.

    So each block does each boot once: boots are its whole plots, environments within a boot its subplots. Boots are
    shuffled separately: in the order of environments the largest group would mostly come first.
    """
    booted = booted_hosts(experiment.environments)
    if not booted:
        return [(environment,) for environment in order]
    groups: dict[object, list[Environment]] = {}
    for environment in order:
        key = group_of(environment) if environment.host in booted else environment.name
        groups.setdefault(key, []).append(environment)
    return _shuffled(list(groups.values()), experiment.seed, number, "boots")


def _turn(experiment: Experiment, number: int, group: Sequence[Environment], cells: Sequence[Cell]) -> Visit:
    """A visit of these environments, one after the other with all its cells."""
    stages = tuple(
        _stage(experiment, number, (environment,), cell)
        for environment in group
        for cell in _in_order(experiment, cells, number, "cells", environment.name)
    )
    names = tuple(environment.name for environment in group)
    return Visit(identity=f"b{number:02d}/{names[0]}", residents=names, stages=stages)


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
