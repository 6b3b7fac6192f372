"""Which works can be done side by side, by the machines that they need, and what follows from it."""

from dataclasses import replace

import pytest

import fakes
from little_plan import make_plan
from pgstrata.conduct.cost import Costs, UnmeasuredTime
from pgstrata.conduct.lanes import environments_by_lane, follow_lanes, lanes_of
from pgstrata.errors import HostLostError
from pgstrata.model.experiment import HostKind, HostSpec

HERE = HostSpec()
ONE, TWO, THREE = (HostSpec(kind=HostKind.SSH, destination=f"db{number}") for number in (1, 2, 3))


class Machine:
    def __init__(self, kernel):
        self.found = kernel

    def kernel(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def rig_of(plan, **kernels):
    machines = {spec: Machine(kernels.get(spec.destination, spec.destination)) for spec in (ONE, TWO, THREE)}
    return replace(fakes.make_rig(fakes.World(), plan), targets=machines)


def plan_of(layers=None):
    plan = make_plan()
    environments = tuple(replace(each, layers=layers or {}) for each in plan.experiment.environments)
    return replace(plan, experiment=replace(plan.experiment, environments=environments))


def lanes(*needed, layers=None, **kernels):
    plan, items = plan_of(layers), [frozenset(each) for each in needed]
    return lanes_of(rig_of(plan, **kernels), plan, items, lambda item: item)


def test_machines_that_share_nothing_have_lanes_of_their_own():
    assert lanes({ONE}, {TWO}, {ONE}) == [[{ONE}, {ONE}], [{TWO}]]


def test_machines_of_one_kernel_and_this_machine_have_one_lane():
    assert lanes({ONE}, {TWO}, db2="db1") == [[{ONE}, {TWO}]]
    assert lanes({ONE}, {TWO}, db1="", db2="") == [[{ONE}, {TWO}]]
    assert lanes({HERE}, {ONE}, {HERE, TWO}) == [[{HERE}, {HERE, TWO}], [{ONE}]]


def test_what_needs_two_machines_joins_their_lanes():
    assert lanes({ONE}, {TWO}, {ONE, TWO}, {THREE}) == [[{ONE}, {TWO}, {ONE, TWO}], [{THREE}]]


def test_where_a_machine_is_lost_or_images_need_the_size_of_all_there_is_one_lane():
    assert lanes({ONE}, {TWO}, db2=HostLostError("gone", where="db2")) == [[{ONE}, {TWO}]]
    assert lanes({ONE}, {TWO}, layers={"filesystem": "ext4"}) == [[{ONE}, {TWO}]]


def test_on_one_machine_there_is_one_lane():
    plan = plan_of()
    assert environments_by_lane(rig_of(plan), plan) == {"a": 0, "b": 0}


def test_works_know_the_machines_of_their_lane_and_after_a_failure_nothing_further_is_begun():
    plan, seen = plan_of(), []

    def act(item, beside):
        seen.append((set(item), set(beside)))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        follow_lanes(rig_of(plan), plan, [frozenset({ONE}), frozenset({TWO})], lambda item: item, act)
    assert seen == [({ONE}, {ONE})]


def test_a_block_takes_as_long_as_its_longest_lane():
    plan = make_plan()
    block, wanted = plan.blocks[0], {run.identity for run in plan.blocks[0].runs}
    costs = Costs(plan=plan, workloads=fakes.make_rig(fakes.World(), plan).workloads)
    together = costs.seconds([block], wanted)
    costs.lanes = {"a": 0, "b": 1}
    assert costs.seconds([block], wanted) == pytest.approx(together / 2)


def test_what_was_measured_side_by_side_is_not_spent_twice():
    # two runs of 10 s at the same time, in 12 s
    assert UnmeasuredTime().plus(preparing=1.0, around=12.0 - 20.0).seconds == pytest.approx(-7.0)
