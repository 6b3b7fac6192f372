"""A plan of two environments, and what it takes to carry it out over fakes."""

import fakes
import records
from pgstrata.conduct.loop import Conduct
from pgstrata.model.experiment import Cell, Reset
from pgstrata.model.plan import Block, Forecast, Plan, PlannedRun, Stage, Visit

CELLS = (Cell(workload="select-only", scale=1, clients=2, threads=2, run=4.0, warmup=1.0),)


def make_plan(*, names=("a", "b"), blocks=2, cells=CELLS, reset=Reset.CLONE, together=False):
    environments = tuple(fakes.environment(name) for name in names)
    experiment = records.make_experiment(environments, blocks=blocks, reset=reset, cells=cells)

    def run(block, name, cell):
        return PlannedRun(
            identity=f"b{block:02}/{name}/{cell.identity}",
            block=block,
            environment=name,
            cell=cell.identity,
            seed=block,
        )

    def visits(block):
        if together:
            stages = tuple(
                Stage(cell=cell.identity, runs=tuple(run(block, name, cell) for name in names)) for cell in cells
            )
            return (Visit(identity=f"b{block:02}", residents=names, stages=stages),)
        return tuple(
            Visit(
                identity=f"b{block:02}/{name}",
                residents=(name,),
                stages=tuple(Stage(cell=cell.identity, runs=(run(block, name, cell),)) for cell in cells),
            )
            for name in names
        )

    return Plan(
        identity="p",
        experiment=experiment,
        blocks=tuple(Block(number=n, visits=visits(n)) for n in range(1, blocks + 1)),
        forecast=Forecast(seconds_per_block=12, seconds_building=0, seconds_total=24, disk_bytes=0, datasets=()),
    )


def carry_out(plan, world, *, budget=None, spent=0.0, **more):
    rig = fakes.make_rig(world, plan, **more)
    return Conduct(rig=rig, plan=plan, budget=budget, spent=spent).carry_out(), rig
