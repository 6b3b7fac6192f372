"""Expected seconds of blocks, from those that were measured."""

from dataclasses import replace

import pytest

import fakes
from little_plan import make_plan
from pgstrata.conduct.cost import Costs
from pgstrata.model.experiment import Interleave
from pgstrata.model.plan import Design
from studies import make_run

STRETCHED = 1


@pytest.fixture
def plan():
    made = make_plan(blocks=3)
    designs = tuple(
        Design(
            cell=cell.identity,
            interleave=Interleave.SLICES,
            slice_seconds=0.25,
            rounds=8,
            discarded=1,
            stretched=STRETCHED,
        )
        for cell in made.experiment.cells
    )
    return replace(made, designs=designs)


def run_of(planned, **dead_time):
    made = make_run(planned.environment, planned.block, cell=planned.cell, tps=1.0)
    return replace(made, identity=planned.identity, measured_seconds=2.0, dead_time=dead_time)


def test_a_block_without_a_stretch_is_not_expected_to_take_the_time_of_one(plan):
    costs = Costs(plan=plan, workloads={"select-only": fakes.WORKLOAD})
    first, second, third = plan.blocks
    costs.learn([(run_of(run, clone=0.5, warmup=1.5), 0.0) for run in first.runs], 0.0, 0.0)
    wanted = {run.identity for run in plan.runs}
    number = len(first.runs)
    assert costs.seconds([first], wanted) == pytest.approx(4.0 * number)
    assert costs.seconds([second], wanted) == pytest.approx(2.5 * number)
    assert costs.seconds([second, third], wanted) == pytest.approx(5.0 * number)
