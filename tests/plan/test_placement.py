"""Which cells pair sessions with CPUs, what is refused, and how CPUs are dealt."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import records
from pgstrata.drivers.registry import driver_capabilities
from pgstrata.errors import PlanRefusedError
from pgstrata.model.driver import DEFAULT_DRIVER
from pgstrata.model.experiment import (
    Cell,
    ConnectionKind,
    Environment,
    HostKind,
    HostSpec,
    Interleave,
    Placement,
    Script,
    ServerKind,
    ServerSpec,
)
from pgstrata.model.plan import HostCapacity
from pgstrata.model.reasons import Reason
from pgstrata.plan import make_plan
from pgstrata.plan.placement import choose_placement, deal
from pgstrata.workloads import builtin_workloads

WORKLOADS = builtin_workloads()
DRIVERS = driver_capabilities()
CAPACITY = HostCapacity(memory=64 * 1024**3, cpus=8, free_disk=1024**4)
CELL = Cell(workload="select-only", scale=10, clients=4, threads=4)
TWO = tuple(
    Environment(name=f"pg{major}", levels=(), server=ServerSpec(kind=ServerKind.CATALOGUE, value=major))
    for major in ("16", "18")
)


def experiment(cell=CELL, environments=TWO):
    return records.make_experiment(environments, cells=(cell,))


def chosen(cell=CELL, environments=TWO, drivers=DRIVERS):
    return choose_placement(experiment(cell, environments), cell, WORKLOADS, drivers)


def everywhere(**values):
    return tuple(replace(each, **values) for each in TWO)


def apart(name, *levels):
    return tuple(replace(each, **{name: level}) for each, level in zip(TWO, levels, strict=True))


MACHINES = tuple(HostSpec(kind=HostKind.SSH, destination=name) for name in ("db1", "db2"))
BESIDE = tuple(
    replace(each, host=machine, client_hosts=(machine,)) for each, machine in zip(TWO, MACHINES, strict=True)
)


def test_sessions_are_paired_where_nothing_speaks_against_it():
    assert chosen() == (Placement.PAIRED, None)


@pytest.mark.parametrize("asked", [Placement.FREE, Placement.PAIRED])
def test_what_a_cell_asks_for_is_taken(asked):
    assert chosen(replace(CELL, placement=asked)) == (asked, None)


@pytest.mark.parametrize(
    ("cell", "environments", "reason"),
    [
        (replace(CELL, workload="connect"), TWO, Reason(code="sessions_end")),
        (replace(CELL, rate=100.0), TWO, Reason(code="rate_free")),
        (
            replace(CELL, workload="mine", scripts=(Script(file="a.sql", text="SELECT :client_id;"),)),
            TWO,
            Reason(code="numbered_clients"),
        ),
        (replace(CELL, profile=True), TWO, Reason(code="one_profile")),
        (CELL, everywhere(server=ServerSpec(kind=ServerKind.DSN, value="x")), Reason(code="not_ours")),
        (CELL, everywhere(host=HostSpec(kind=HostKind.SSH, destination="db1")), Reason(code="apart_free")),
        (
            CELL,
            apart("connection", ConnectionKind.SOCKET, ConnectionKind.TCP),
            Reason(code="asks_scheduling", names=("connection",)),
        ),
        (
            CELL,
            apart("layers", {"cpu.policy": "batch"}, {"cpu.policy": "other"}),
            Reason(code="asks_scheduling", names=("cpu.policy",)),
        ),
        (
            CELL,
            apart("layers", {"kernel": "6.1"}, {}),
            Reason(code="asks_scheduling", names=("kernel",)),
        ),
        (
            CELL,
            apart("layers", {"boot.options": "isolcpus=1"}, {"boot.options": "none"}),
            Reason(code="asks_scheduling", names=("boot.options",)),
        ),
        (CELL, BESIDE, Reason(code="asks_scheduling", names=("host",))),
        (
            CELL,
            apart("settings", {"io_method": "worker"}, {"io_method": "sync"}),
            Reason(code="asks_scheduling", names=("io_method",)),
        ),
        (
            CELL,
            apart("settings", {"io_workers": "3"}, {}),
            Reason(code="asks_scheduling", names=("io_workers",)),
        ),
        (
            CELL,
            everywhere(settings={"force_parallel_mode": "on"}),
            Reason(code="parallel_free", names=("force_parallel_mode",)),
        ),
        (
            CELL,
            everywhere(settings={"max_parallel_workers_per_gather": "4"}),
            Reason(code="parallel_free", names=("max_parallel_workers_per_gather",)),
        ),
    ],
    ids=lambda value: getattr(value, "code", ""),
)
def test_sessions_stay_free_and_the_plan_knows_why(cell, environments, reason):
    assert chosen(cell, environments) == (Placement.FREE, reason)


@pytest.mark.parametrize("layers", [{"cpu.server": "0-3"}, {"kernel": "6.1"}])
def test_cpus_and_a_kernel_that_are_the_same_for_all_leave_sessions_paired(layers):
    assert chosen(environments=everywhere(layers=layers))[0] is Placement.PAIRED


def test_one_way_to_read_for_all_leaves_sessions_paired():
    assert chosen(environments=everywhere(settings={"io_method": "sync"}))[0] is Placement.PAIRED


def test_a_driver_that_cannot_be_divided_is_left_free():
    drivers = {DEFAULT_DRIVER: replace(DRIVERS[DEFAULT_DRIVER], placeable=False)}
    assert chosen(drivers=drivers) == (Placement.FREE, Reason(code="not_placeable", names=(DEFAULT_DRIVER,)))


def test_pairs_that_cannot_be_are_refused_for_a_cell_and_for_a_level():
    reconnecting = replace(CELL, workload="connect")
    for asked in (
        experiment(replace(reconnecting, placement=Placement.PAIRED)),
        experiment(reconnecting, apart("placement", Placement.FREE, Placement.PAIRED)),
    ):
        with pytest.raises(PlanRefusedError, match="sessions_end"):
            make_plan(asked, WORKLOADS, CAPACITY, drivers=DRIVERS)


def test_a_level_of_an_environment_goes_before_the_cell():
    levels = apart("placement", Placement.FREE, Placement.PAIRED)
    design = make_plan(experiment(CELL, levels), WORKLOADS, CAPACITY, drivers=DRIVERS).design(CELL.identity)
    assert [design.pairs(each) for each in levels] == [False, True]
    assert design.pairs(replace(levels[0], placement=Placement.AUTO)) is (design.placement is Placement.PAIRED)
    assert design.describe(10, levels).endswith(", sessions paired in some environments")
    assert design.describe(10, levels[1:]).endswith(", sessions paired")
    assert "sessions" not in design.describe(10, levels[:1])


@pytest.mark.parametrize("asked", [Placement.FREE, Placement.PAIRED])
def test_what_all_environments_ask_for_is_the_design_of_the_cell(asked):
    assert chosen(environments=everywhere(placement=asked)) == (asked, None)
    assert chosen(replace(CELL, placement=Placement.FREE), everywhere(placement=asked)) == (asked, None)
    assert chosen(environments=everywhere(placement=Placement.AUTO)) == (Placement.PAIRED, None)


@given(st.integers(1, 200), st.integers(1, 64), st.integers(0, 2**32))
def test_sessions_are_dealt_evenly_and_the_seed_decides_to_which(sessions, cpus, seed):
    places = deal(sessions, cpus, seed)
    counts = Counter(places)
    assert len(places) == sessions
    assert counts.keys() <= set(range(cpus))
    assert len(counts) == min(sessions, cpus)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert deal(sessions, cpus, seed) == places


def test_another_block_deals_anew():
    assert len({deal(4, 8, seed) for seed in range(50)}) > 40


@pytest.mark.parametrize(("arms", "seconds"), [(1, 0.25), (2, 0.25), (3, 0.167), (4, 0.125), (5, 0.1), (12, 0.1)])
def test_slices_are_shorter_the_more_environments_share_a_round(arms, seconds):
    environments = tuple(replace(TWO[0], name=f"e{number}") for number in range(arms))
    asked = replace(experiment(CELL, environments), interleave=Interleave.SLICES)
    assert make_plan(asked, WORKLOADS, CAPACITY, drivers=DRIVERS).design(CELL.identity).slice_seconds == seconds


@pytest.mark.parametrize(("arms", "rounds"), [(1, 8), (2, 8), (3, 10), (4, 12), (5, 14), (12, 16)])
def test_a_visit_has_more_rounds_the_more_environments_share_it(arms, rounds):
    environments = tuple(replace(TWO[0], name=f"e{number}") for number in range(arms))
    asked = replace(experiment(CELL, environments), interleave=Interleave.SLICES)
    assert make_plan(asked, WORKLOADS, CAPACITY, drivers=DRIVERS).design(CELL.identity).rounds == rounds


@pytest.mark.parametrize(("threshold", "rounds"), [(0.03, 8), (0.02, 8), (0.019, 16), (0.01, 16)])
def test_a_visit_has_more_rounds_where_small_differences_matter(threshold, rounds):
    asked = replace(experiment(CELL, TWO), interleave=Interleave.SLICES, threshold=threshold)
    assert make_plan(asked, WORKLOADS, CAPACITY, drivers=DRIVERS).design(CELL.identity).rounds == rounds
