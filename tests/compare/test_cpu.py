"""Differences by the ratio of server CPU to client CPU: where they are looked for, and what they leave alone."""

import math
from dataclasses import replace

import numpy as np
import pytest

from pgstrata.compare import compare_study, open_pairs
from pgstrata.compare.cpu import find_by_cpu
from pgstrata.model.answer import Verdict
from pgstrata.model.experiment import (
    ConnectionKind,
    ControlKind,
    HostKind,
    HostSpec,
    Interleave,
    ServerKind,
    ServerSpec,
)
from pgstrata.model.plan import Design
from pgstrata.model.runs import RunStatus
from pgstrata.stats.boundaries import ALPHA_CPU
from studies import BASE, OTHER, cell_of, make_environment, make_plan, make_run


def plan_of(*environments, clients=(4,), blocks=24, design=None, **rest):
    environments = environments or (make_environment(OTHER, "18"),)
    plan = make_plan([make_environment(BASE), *environments], clients=clients, blocks=blocks, **rest)
    fields = {"interleave": Interleave.RUNS, "writes": False} if design is None else design
    designs = tuple(Design(cell=cell.identity, **fields) for cell in plan.experiment.cells)
    return replace(plan, designs=designs, horizon=60)


def measure(plan, server=None, *, noise=0.2, own=0.01, blocks=None, seed=1):
    """Runs on a machine that does the same to throughput and both CPUs; `server` are logs of its CPU by environment."""
    runs, random = [], np.random.default_rng(seed)
    for block in range(1, (blocks or len(plan.blocks)) + 1):
        for cell in plan.experiment.cells:
            for environment in plan.experiment.environments:
                more = (server or {}).get(environment.name, 0.0)
                machine = random.normal(0, noise)
                values = {
                    "tps": 1000 * math.exp(-machine - more / 2),
                    "server_cpu_per_tx": 0.001 * math.exp(machine + more + random.normal(0, own)),
                    "client_cpu_per_tx": 0.0005 * math.exp(machine),
                }
                runs.append(make_run(environment.name, block, cell=cell.identity, **values))
    return runs


def find(plan, runs):
    return find_by_cpu(plan, runs, compare_study(plan, runs))


def test_cpu_finds_a_difference_of_which_throughput_knows_nothing():
    plan = plan_of()
    (found,) = find(plan, measure(plan, {OTHER: math.log(1.05)}))
    assert (found.environment, found.cells, found.verdict) == (OTHER, (cell_of(4),), Verdict.WORSE)
    assert found.alone
    assert found.throughput.verdict is Verdict.INCONCLUSIVE
    assert found.effect == pytest.approx(1.05, abs=0.01)
    assert 1 < found.interval.low <= found.effect <= found.interval.high
    assert (found.level, found.decided_at) == (ALPHA_CPU, 10)


def test_less_server_cpu_is_better():
    plan = plan_of()
    (found,) = find(plan, measure(plan, {OTHER: math.log(0.95)}))
    assert found.verdict is Verdict.BETTER
    assert found.effect < 1


def test_the_sizes_are_those_that_the_answer_shows():
    plan = plan_of()
    runs = measure(plan, {OTHER: math.log(1.05)})
    known = {item.metric: item for item in compare_study(plan, runs)}
    (found,) = find(plan, runs)
    for size in (found.server_cpu, found.client_cpu, found.throughput):
        shown = known[size.metric]
        assert (size.verdict, size.effect, size.interval) == (shown.verdict, shown.effect, shown.interval)


def test_it_is_not_alone_where_throughput_shows_a_difference():
    plan = plan_of()
    (found,) = find(plan, measure(plan, {OTHER: 0.3}, noise=0.01))
    assert found.found
    assert not found.alone


def test_without_a_difference_it_says_nothing_and_never_that_two_are_equal():
    plan = plan_of(blocks=60)
    (found,) = find(plan, measure(plan))
    assert (found.verdict, found.decided_at, found.found) == (Verdict.INCONCLUSIVE, None, False)
    (found,) = find(plan, measure(plan, own=0.0, noise=0.001))
    assert found.verdict is Verdict.INCONCLUSIVE


def test_environments_share_its_error_probability_and_a_control_does_not():
    control = make_environment(f"{BASE}-control", control=ControlKind.SAME)
    others = [make_environment(name) for name in ("a", "b")]
    plan = plan_of(*others, control)
    found = find(plan, measure(plan))
    assert [(item.level, item.control) for item in found] == [(0.005, False), (0.005, False), (0.01, True)]


def test_each_difference_found_leaves_more_to_the_others():
    plan = plan_of(*(make_environment(name) for name in ("a", "b")))
    first, second = find(plan, measure(plan, {"a": 0.3}))
    assert (first.level, second.level) == (0.005, 0.01)


def test_several_cells_that_read_are_one_finding_beside_those_that_write():
    plan = plan_of(clients=(1, 2, 4))
    writing = replace(plan.designs[2], writes=True)
    plan = replace(plan, designs=(*plan.designs[:2], writing))
    (found,) = find(plan, measure(plan, {OTHER: math.log(1.05)}))
    assert found.cells == (cell_of(1), cell_of(2))
    assert found.verdict is Verdict.WORSE
    assert found.throughput.effect == pytest.approx(1 / math.sqrt(1.05), abs=0.1)


@pytest.mark.parametrize(
    "design",
    [
        {"interleave": Interleave.RUNS, "writes": True},
        {"interleave": Interleave.SLICES, "writes": True, "settle": True},
        {"interleave": Interleave.SLICES, "settle": True},
        {"interleave": Interleave.RUNS},
    ],
)
def test_it_is_not_asked_in_cells_that_write_or_may(design):
    plan = plan_of(design=design)
    assert find(plan, measure(plan, {OTHER: 0.3})) == ()


def test_of_former_plans_slices_without_a_gap_are_known_to_read():
    plan = plan_of(design={"interleave": Interleave.SLICES})
    assert len(find(plan, measure(plan))) == 1


def test_it_is_not_asked_at_a_fixed_rate():
    plan = plan_of()
    (cell,) = plan.experiment.cells
    rated = replace(cell, rate=100.0)
    designs = (replace(plan.designs[0], cell=rated.identity),)
    plan = replace(plan, experiment=replace(plan.experiment, cells=(rated,)), designs=designs)
    assert find(plan, measure(plan, {OTHER: 0.3})) == ()


def test_it_is_not_asked_beside_another_metric_than_throughput():
    plan = plan_of(metric="server_cpu_per_tx")
    assert find(plan, measure(plan, {OTHER: 0.3})) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"host": HostSpec(kind=HostKind.SSH, destination="other")},
        {"server": ServerSpec(kind=ServerKind.DSN, value="there")},
        {"connection": ConnectionKind.TLS},
        {"layers": {"cpu.client": "0"}},
    ],
)
def test_it_is_not_asked_of_environments_whose_client_differs_or_whose_cpu_is_elsewhere(changes):
    plan = plan_of(replace(make_environment(OTHER, "18"), **changes))
    assert find(plan, measure(plan, {OTHER: 0.3})) == ()


def test_without_known_cpu_there_is_no_finding():
    plan = plan_of()
    runs = [replace(run, measurements=run.measurements[:1]) for run in measure(plan)]
    assert find(plan, runs) == ()


def test_of_an_environment_that_collapsed_nothing_is_found():
    plan = plan_of()
    runs = [
        replace(run, status=RunStatus.COLLAPSED) if run.environment == OTHER and run.block > 4 else run
        for run in measure(plan, {OTHER: 0.3})
    ]
    assert find(plan, runs) == ()


def test_neither_verdicts_nor_what_is_measured_next_depend_on_it():
    plan = plan_of()
    runs = measure(plan, {OTHER: math.log(1.05)})
    (found,) = find(plan, runs)
    assert found.decided_at == 10
    verdict = compare_study(plan, runs)[0]
    assert (verdict.verdict, verdict.level) == (Verdict.INCONCLUSIVE, 0.045)
    without = [replace(run, measurements=run.measurements[:1]) for run in runs]
    for number in (11, 24, 25):
        assert open_pairs(plan, runs, number) == open_pairs(plan, without, number) != frozenset()
