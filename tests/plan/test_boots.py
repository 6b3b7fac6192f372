"""Boots are whole plots: each block boots each of them once, and measures in it all that ask for it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from little_plan import make_plan
from pgstrata.drivers.registry import driver_capabilities
from pgstrata.errors import ExperimentError, PlanRefusedError
from pgstrata.experiment.parse import parse_experiment
from pgstrata.model.boot import boots_of, group_of, is_of_series
from pgstrata.model.experiment import ControlKind
from pgstrata.model.plan import HostCapacity
from pgstrata.plan import make_plan as make_real_plan
from pgstrata.report.planning.plan import render_plan
from pgstrata.workloads import builtin_workloads

CAPACITY = HostCapacity(memory=32 * 1024**3, cpus=4, free_disk=1024**4)
WORKLOADS = builtin_workloads()
TEXT = """
question = "Which kernel?"
controls = {controls}
blocks = 8
seed = {seed}
[factors]
kernel = {kernels}
pages = ["4kB", "2MB"]
[common]
host = "{host}"
[[cells]]
workload = "select-only"
scale = 10
clients = [1, 2]
run = "10s"
"""


def parse(*, kernels='["6.1", "6.12"]', controls='["same"]', host="ssh:db1", seed=1, more=""):
    text = TEXT.format(kernels=kernels, controls=controls, host=host, seed=seed) + more
    return parse_experiment(text, "x", read_file=str, workloads=WORKLOADS)


def plan(**more):
    return make_real_plan(parse(**more), WORKLOADS, CAPACITY, drivers=driver_capabilities())


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(['["same"]', '["same", "reboot"]', "[]"]))
def test_each_block_boots_each_kernel_once_and_measures_everything_in_it(seed, controls):
    made = plan(seed=seed, controls=controls)
    wanted = boots_of(made.experiment.environments)
    assert len(wanted) == 2 + ("reboot" in controls)
    for block in made.blocks:
        booted = []
        for visit in block.visits:
            (group,) = {group_of(made.experiment.environment(name)) for name in visit.residents}
            booted.append(group)
        assert sorted(map(str, booted)) == sorted(map(str, wanted))
        assert len(block.runs) == len(made.experiment.environments) * len(made.experiment.cells)
        assert len({run.identity for run in block.runs}) == len(block.runs)


def test_the_boots_of_blocks_are_in_different_orders_and_each_comes_first():
    made = plan(controls='["same", "reboot"]')
    first = {group_of(made.experiment.environment(block.visits[0].residents[0])) for block in made.blocks}
    assert len(first) > 1


def test_an_environment_that_names_no_kernel_is_measured_in_a_boot_of_its_own():
    text = """
    question = "Which kernel?"
    [common]
    host = "ssh:db1"
    [[environments]]
    name = "own"
    [[environments]]
    name = "older"
    kernel = "6.1"
    [[cells]]
    workload = "select-only"
    scale = 10
    clients = 2
    """
    experiment = parse_experiment(text, "x", read_file=str, workloads=WORKLOADS)
    assert [group.boot.kernel for group in boots_of(experiment.environments)] == ["", "6.1"]


def test_images_of_virtual_machines_are_levels_of_host():
    text = """
    question = "Which distribution?"
    baseline = { host = "vm:deb12" }
    blocks = 8
    [factors]
    host = ["vm:deb12", "vm:deb13"]
    [common]
    "vm.memory" = "1GB"
    [[cells]]
    workload = "select-only"
    scale = 10
    clients = 2
    """
    experiment = parse_experiment(text, "x", read_file=str, workloads=WORKLOADS)
    assert [group.host.text for group in boots_of(experiment.environments)] == ["vm:deb12", "vm:deb13"]
    made = make_real_plan(experiment, WORKLOADS, CAPACITY, drivers=driver_capabilities())
    for block in made.blocks:
        assert sorted(name for visit in block.visits for name in visit.residents) == ["deb12", "deb13"]
    said = render_plan(made)
    for image in ("vm:deb12", "vm:deb13"):
        assert f"{image} boots 1 time in each block, and is switched off at the end" in said


def test_environments_of_a_machine_that_is_not_booted_have_visits_of_their_own():
    made = make_plan(blocks=1)
    assert [visit.residents for visit in made.blocks[0].visits] == [("a",), ("b",)]
    assert boots_of(made.experiment.environments) == ()


def test_boots_count_in_the_forecast():
    without = replace(plan().experiment, environments=tuple(
        replace(each, layers={key: value for key, value in each.layers.items() if key != "kernel"})
        for each in plan().experiment.environments
    ))  # fmt: skip
    made = make_real_plan(without, WORKLOADS, CAPACITY, drivers=driver_capabilities())
    assert plan().forecast.seconds_per_block == pytest.approx(made.forecast.seconds_per_block + 2 * 60)


def test_the_plan_says_which_runs_share_a_boot():
    text = render_plan(plan(controls='["reboot"]'))
    assert "(one boot)" in text
    assert "up together" not in text


def test_a_boot_alone_is_no_change_for_each_run():
    changed = "the host is changed for each run"
    assert changed in render_plan(plan())
    bare = TEXT.format(kernels='["6.1", "6.12"]', controls="[]", host="ssh:db1", seed=1).replace(
        'pages = ["4kB", "2MB"]', ""
    )
    experiment = parse_experiment(bare, "x", read_file=str, workloads=WORKLOADS)
    text = render_plan(make_real_plan(experiment, WORKLOADS, CAPACITY, drivers=driver_capabilities()))
    assert changed not in text
    assert "ssh:db1 boots 2 times in each block, and boots its own kernel at the end" in text


def problems(**more):
    with pytest.raises(ExperimentError) as caught:
        parse(**more)
    return [(problem.what, problem.remedy) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("kernels", "what"),
    [
        ('["newest"]', "'newest' is not a version of a kernel"),
        ("[6.10, 6.1]", "is written as a number, in which 6.10 and 6.1 are the same"),
        ('["6.1 quiet"]', "'6.1 quiet' is not a version of a kernel"),
        ('["-6.1"]', "'-6.1' is not a version of a kernel"),
        ('["../6.1"]', "'../6.1' is not a version of a kernel"),
    ],
)
def test_what_is_no_kernel_is_refused(kernels, what):
    assert any(what in found for found, _ in problems(kernels=kernels))


def test_this_machine_boots_kernels_if_it_is_allowed_to():
    said = render_plan(plan(host="local", controls='["reboot"]'), "x")
    assert "this machine boots 3 times in each block, and boots its own kernel at the end" in said
    assert "--reboot" in said


def test_a_running_server_of_this_machine_is_not_ended_by_a_reboot():
    found = problems(host='local"\nserver = "dsn:x', controls='["reboot"]')
    assert any("kernel reboots this machine, which would end the running server" in what for what, _ in found)
    assert any("the control reboot reboots this machine" in what for what, _ in found)


@pytest.mark.parametrize(
    ("load", "what"),
    [('rate = "80 % of maximum"', "is a share of what all environments reach"),
     ('clients = { from = 1, to = 8, steps = 4, until = "throughput falls" }', "ladder that ends where throughput")],
)  # fmt: skip
def test_what_all_environments_must_show_first_is_refused_on_this_machine(load, what):
    text = TEXT.format(kernels='["6.1", "6.12"]', controls="[]", host="local", seed=1)
    text = text.replace("clients = [1, 2]\n", "" if load.startswith("clients") else "clients = 2\n") + f"{load}\n"
    experiment = parse_experiment(text, "x", read_file=str, workloads=WORKLOADS)
    with pytest.raises(PlanRefusedError, match=what):
        make_real_plan(experiment, WORKLOADS, CAPACITY, drivers=driver_capabilities())


@pytest.mark.parametrize("words", ["root=/dev/sdb", "init=/bin/sh", "single", "a;b", "$(x)", "a=`b`", "a='b'"])
def test_words_that_decide_whether_it_comes_up_or_mean_more_than_a_word_are_refused(words):
    text = TEXT.format(kernels='["6.1"]', controls="[]", host="ssh:db1", seed=1).replace(
        'pages = ["4kB", "2MB"]', f'"boot.options" = ["quiet", "{words}"]'
    )
    with pytest.raises(ExperimentError) as caught:
        parse_experiment(text, "x", read_file=str, workloads=WORKLOADS)
    (problem,) = caught.value.problems
    assert repr(words) in problem.what


def test_a_release_is_of_a_series_where_its_number_goes_on_no_further():
    assert is_of_series("6.1.0-44-amd64", "6.1")
    assert is_of_series("6.1.0-44-amd64", "6.1.0-44-amd64")
    assert is_of_series("6.1-rc2", "6.1")
    assert not is_of_series("6.12.1", "6.1")
    assert is_of_series("anything", "")


def test_the_control_by_reboot_is_the_baseline_in_another_boot():
    experiment = parse(controls='["reboot"]')
    control = experiment.environments[-1]
    assert control.control is ControlKind.REBOOT
    assert control.name.endswith("-reboot")
    assert replace(control, name=experiment.baseline, control=None) == experiment.environment(experiment.baseline)
