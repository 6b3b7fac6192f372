"""A plan without the cells beyond the end of a ladder."""

from dataclasses import replace

import pytest

from little_plan import CELLS, make_plan
from pgstrata.model.experiment import Interleave
from pgstrata.model.plan import Design
from pgstrata.model.server import Fingerprint
from pgstrata.sources.ladders import cut_ladders

CELLS_OF_LADDER = tuple(replace(CELLS[0], clients=clients, until_falls=True) for clients in (1, 2, 4))
NAMES = [cell.identity for cell in CELLS_OF_LADDER]


@pytest.fixture(params=[False, True], ids=["one after the other", "together"])
def plan(request):
    made = make_plan(cells=CELLS_OF_LADDER, together=request.param)
    return replace(made, designs=tuple(Design(cell=name, interleave=Interleave.RUNS) for name in NAMES))


def test_only_what_is_kept_as_left_out_is_beyond(plan):
    facts = {NAMES[0]: "measured", NAMES[1]: "measured", NAMES[2]: "left out", "of another plan": "left out"}
    assert cut_ladders(plan, Fingerprint(facts=facts))[1] == CELLS_OF_LADDER[2:]
    assert cut_ladders(plan, Fingerprint(facts={}))[1] == ()


def test_what_is_left_keeps_its_identity_order_and_seeds(plan):
    short, _ = cut_ladders(plan, Fingerprint(facts={NAMES[2]: "left out"}))
    assert short.identity == plan.identity
    assert short.experiment.cells == CELLS_OF_LADDER[:2]
    assert [design.cell for design in short.designs] == NAMES[:2]
    assert short.runs == tuple(run for run in plan.runs if run.cell != NAMES[2])
    assert all(visit.stages for block in short.blocks for visit in block.visits)


def test_a_plan_that_loses_nothing_is_the_same(plan):
    assert cut_ladders(plan, Fingerprint(facts=dict.fromkeys(NAMES, "measured"))) == (plan, ())
    assert cut_ladders(plan, None)[0] is plan
