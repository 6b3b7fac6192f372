"""Ladders of clients that end where throughput falls: which cells a study left out, and its plan without them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from pgstrata.model.experiment import Cell
from pgstrata.model.plan import Block, Plan, Visit

LADDERS: Final = "ladders"
"""Name under which a study keeps, by identity of each cell of its ladders, whether it is measured."""
MEASURED: Final = "measured"
LEFT_OUT: Final = "left out"


def cells_beyond(plan: Plan, facts: Mapping[str, str]) -> tuple[Cell, ...]:
    """Cells beyond the end of their ladder, in the order of the plan.

    Args:
        plan: with all cells of the experiment.
        facts: kept as `LADDERS`; empty where the ladders have not been climbed yet.
    """
    return tuple(cell for cell in plan.experiment.cells if facts.get(cell.identity) == LEFT_OUT)


def without_cells(plan: Plan, cells: Collection[Cell]) -> Plan:
    """The plan without some of its cells, under the same identity: what is left keeps its order and its seeds."""
    if not cells:
        return plan
    names = {cell.identity for cell in cells}
    experiment = plan.experiment
    return replace(
        plan,
        experiment=replace(experiment, cells=tuple(cell for cell in experiment.cells if cell.identity not in names)),
        blocks=tuple(_shorten(block, names) for block in plan.blocks),
        designs=tuple(design for design in plan.designs if design.cell not in names),
        floors={cell: floor for cell, floor in plan.floors.items() if cell not in names},
    )


def _shorten(block: Block, names: Collection[str]) -> Block:
    visits = [
        Visit(
            identity=visit.identity,
            residents=visit.residents,
            stages=tuple(stage for stage in visit.stages if stage.cell not in names),
        )
        for visit in block.visits
    ]
    return Block(number=block.number, visits=tuple(visit for visit in visits if visit.stages))
