"""Ladders of clients that end where throughput falls: which cells a study left out, and its plan without them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from pgstrata.model.experiment import Cell
from pgstrata.model.plan import Block, Plan
from pgstrata.model.server import Fingerprint

LADDERS: Final = "ladders"
"""Name under which a study keeps, by identity of each cell of its ladders, whether it is measured."""
MEASURED: Final = "measured"
LEFT_OUT: Final = "left out"


def cut_ladders(plan: Plan, kept: Fingerprint | None) -> tuple[Plan, tuple[Cell, ...]]:
    """The plan as far as its ladders go, under the same identity, and the cells beyond in their order.

    The rest keeps its order and its seeds.

    Args:
        plan: with all cells of the experiment, or cut before.
        kept: as `LADDERS`; None where the ladders have not been climbed yet.
    """
    facts = kept.facts if kept is not None else {}
    experiment = plan.experiment
    beyond = tuple(cell for cell in experiment.cells if facts.get(cell.identity) == LEFT_OUT)
    if not beyond:
        return plan, ()
    names = {cell.identity for cell in beyond}
    short = replace(
        plan,
        experiment=replace(experiment, cells=tuple(cell for cell in experiment.cells if cell not in beyond)),
        blocks=tuple(_shorten(block, names) for block in plan.blocks),
        designs=tuple(design for design in plan.designs if design.cell not in names),
        floors={cell: floor for cell, floor in plan.floors.items() if cell not in names},
    )
    return short, beyond


def _shorten(block: Block, names: Collection[str]) -> Block:
    visits = [
        replace(visit, stages=tuple(stage for stage in visit.stages if stage.cell not in names))
        for visit in block.visits
    ]
    return replace(block, visits=tuple(visit for visit in visits if visit.stages))
