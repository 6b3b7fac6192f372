"""Controls: the baseline a second time, on the same data or on data that are built anew."""

from dataclasses import replace

import pytest

from pgstrata.datasets.cluster import dataset_identity
from pgstrata.drivers.registry import driver_capabilities
from pgstrata.experiment.parse import parse_experiment
from pgstrata.model.experiment import ControlKind
from pgstrata.model.plan import HostCapacity
from pgstrata.model.server import Build, ServerVersion
from pgstrata.plan import make_plan
from pgstrata.workloads import builtin_workloads

WORKLOADS = builtin_workloads()
TEXT = """
controls = [{controls}]
[factors]
server = ["16", "18"]
[[cells]]
workload = "select-only"
scale = 10
clients = 4
"""


def parse(*controls):
    text = TEXT.format(controls=", ".join(f'"{one}"' for one in controls))
    return parse_experiment(text, "x", read_file=str, workloads=WORKLOADS)


@pytest.mark.parametrize("controls", [("same", "rebuild"), ("rebuild", "same")])
def test_the_baseline_is_there_once_more_for_each_control(controls):
    base, _, *others = parse(*controls).environments
    assert [(one.name, one.control) for one in others] == [
        ("pg16-control", ControlKind.SAME),
        ("pg16-rebuild", ControlKind.REBUILD),
    ]
    assert all(replace(one, name=base.name, control=None) == base for one in others)


def test_a_control_by_rebuild_has_a_dataset_of_its_own():
    build = Build(
        spec=parse().environments[0].server,
        prefix="/pg",
        version=ServerVersion(text="16", number=160000),
        supplier="s",
        compiler="c",
        configure="",
        cflags="",
        digest="d",
    )
    experiment = parse("same", "rebuild")
    base, _, same, rebuilt = (
        dataset_identity(one, build, experiment.cells[0], WORKLOADS["select-only"].data)
        for one in experiment.environments
    )
    assert base == same != rebuilt


def test_what_is_built_anew_counts_in_the_forecast():
    capacity = HostCapacity(memory=32 * 1024**3, cpus=4, free_disk=1024**4)
    needs = [
        make_plan(parse(*controls), WORKLOADS, capacity, drivers=driver_capabilities()).forecast.datasets
        for controls in ((), ("same",), ("same", "rebuild"))
    ]
    assert [len(need) for need in needs] == [2, 2, 3]
