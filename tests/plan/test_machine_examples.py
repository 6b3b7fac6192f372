"""Examples of kernels and machines do what their comments say: boots, factors, cells and prices."""

from pathlib import Path

import pytest

from pgstrata.drivers.registry import driver_capabilities
from pgstrata.experiment.defaults import complete_experiment
from pgstrata.experiment.parse import parse_experiment
from pgstrata.model.boot import boots_of
from pgstrata.model.experiment import HERE, ControlKind
from pgstrata.model.plan import HostCapacity
from pgstrata.plan import make_plan
from pgstrata.report.planning.plan import render_plan
from pgstrata.workloads import builtin_workloads

EXAMPLES = Path(__file__).parents[2] / "examples"
WORKLOADS = builtin_workloads()
LARGE = HostCapacity(memory=256 * 1024**3, cpus=16, free_disk=64 * 1024**4)


def plan(name):
    file = EXAMPLES / f"{name}.toml"
    text = file.read_text(encoding="utf-8")
    experiment = parse_experiment(
        text, file.name, read_file=str, workloads=WORKLOADS, drivers=driver_capabilities(), cpus=16
    )
    whole = complete_experiment(experiment, LARGE, WORKLOADS)
    return make_plan(whole, WORKLOADS, LARGE, drivers=driver_capabilities())


def levels(made, factor):
    found = [level.value for each in made.experiment.environments for level in each.levels if level.factor == factor]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("name", ["kernels", "short/kernels"])
def test_kernels_are_booted_once_in_each_block_and_the_baseline_once_more(name):
    made = plan(name)
    kernels = levels(made, "kernel")
    assert len(kernels) == {"kernels": 13, "short/kernels": 2}[name]
    assert len(boots_of(made.experiment.environments)) == len(kernels) + 1
    assert f"ssh:db1 boots {len(kernels) + 1} times in each block, and boots its own kernel at the end" in render_plan(
        made
    )
    assert [each.control for each in made.experiment.environments if each.control] == [ControlKind.REBOOT]
    assert {each.client_hosts for each in made.experiment.environments} == {HERE}


def test_data_of_kernels_fit_into_shared_buffers_then_memory_then_neither():
    cells = plan("kernels").experiment.cells
    assert {cell.workload for cell in cells} == {"select-only", "tpcb-like"}
    sizes = [WORKLOADS["tpcb-like"].data.size(scale) for scale in sorted({cell.scale for cell in cells})]
    shared_buffers, memory = 2 << 30, 8 << 30
    assert sizes[0] < shared_buffers < sizes[1] < memory < sizes[2]


def test_pages_and_warm_up_are_crossed_with_the_kernel():
    made = plan("kernel-and-huge-pages")
    assert (levels(made, "kernel"), levels(made, "pages")) == (["6.12", "7.0"], ["4kB", "2MB"])
    # four combinations and the baseline in another boot; each kernel boots once for both kinds of pages
    assert len(made.experiment.environments) == 5
    assert len(boots_of(made.experiment.environments)) == 3
    cells = made.experiment.cells
    assert [cell.warmup for cell in cells] == [300, 1]
    assert len({cell.identity for cell in cells}) == 2
    assert {cell.clients for cell in cells} == {1024}


def test_instances_have_prices_and_the_client_beside_the_server():
    made = plan("instances")
    experiment = made.experiment
    assert (levels(made, "host"), levels(made, "checksums")) == (["ssh:m5d", "ssh:m6gd"], ["off", "on"])
    amounts = {experiment.environment(name).host.text: price.amount for name, price in experiment.prices.items()}
    assert amounts == {"ssh:m5d": 1.808, "ssh:m6gd": 1.4464}
    assert len(experiment.prices) == 4
    assert {cell.warmup for cell in experiment.cells if cell.workload == "tpcc"} == {600}
    assert all(each.client_hosts == (each.host,) for each in experiment.environments)


def test_distributions_are_compared_under_three_loads_from_1_to_111_clients():
    experiment = plan("distributions").experiment
    loads = {cell.workload: [] for cell in experiment.cells}
    for cell in experiment.cells:
        loads[cell.workload].append(cell.clients)
    assert list(loads) == ["select-only", "tpcb-like", "heavyweight"]
    for clients in loads.values():
        assert (len(clients), min(clients), max(clients)) == (8, 1, 111)
    assert [each.control for each in experiment.environments if each.control] == [ControlKind.SAME]


@pytest.mark.parametrize(
    "name", ["kernels", "short/kernels", "instances", "distributions", "kernel-and-huge-pages", "client-beside"]
)
def test_the_budget_holds_enough_blocks_for_a_verdict(name):
    assert "budget_verdict" not in {note.code for note in plan(name).notes}
