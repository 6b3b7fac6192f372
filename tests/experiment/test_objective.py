"""Cells with an objective: how the limit is written, what it excludes, and what is planned; with the real workloads."""

import json

import pytest

from pgstrata.drivers.registry import driver_capabilities
from pgstrata.errors import ExperimentError, PlanRefusedError
from pgstrata.model.experiment import Placement
from pgstrata.model.objective import Objective, Search
from pgstrata.model.reasons import Reason
from pgstrata.plan import make_plan
from pgstrata.report.planning.plan import plan_json, render_plan
from pgstrata.workloads import builtin_workloads

WORKLOADS = builtin_workloads()
TWO = """
[factors]
server = ["18", "16"]
"""
CELL = '[[cells]]\nworkload = "select-only"\nscale = 1\nclients = 2\n'
SEARCH = f'{CELL}objective = "p99 < 20ms"\n'


@pytest.fixture(scope="module")
def read(parse):
    return lambda text: parse(text, workloads=WORKLOADS, drivers=driver_capabilities())


@pytest.fixture(scope="module")
def plan(read, capacity):
    return lambda text: make_plan(read(text), WORKLOADS, capacity, drivers=driver_capabilities())


@pytest.mark.parametrize(
    ("text", "of", "limit"),
    [
        ("p99 < 20ms", "p99", 0.02),
        ("p50<1.5ms", "p50", 0.0015),
        ("mean < 0.1s", "mean", 0.1),
        ("p95 < 80us", "p95", 8e-5),
    ],
)
def test_an_objective_is_a_limit_of_a_percentile_or_the_mean(read, text, of, limit):
    experiment = read(TWO + CELL + f'objective = "{text}"\n')
    found = experiment.cells[0].objective
    assert (found.of, found.limit) == (of, pytest.approx(limit))
    assert experiment.metric == "sustained_rate"


def test_cells_that_differ_in_their_objectives_have_names_of_their_own(read):
    cells = read(TWO + SEARCH + CELL + 'objective = "p50 < 2ms"\n').cells
    assert [cell.identity for cell in cells] == ["select-only-s1-c2-p99-20ms", "select-only-s1-c2-p50-2ms"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("objective = 20", "an objective is a text"),
        ('objective = "p99"', "is not an objective"),
        ('objective = "p99 > 20ms"', "is not an objective"),
        ('objective = "p98 < 20ms"', "'p98' cannot be limited"),
        ('objective = "p99 < fast"', "'fast' is not a duration"),
        ('objective = "p99 < 0ms"', "longer than zero"),
        ('objective = "p99 < 20ms"\nrate = 100', "rate and an objective exclude each other"),
        ('objective = "p99 < 20ms"\nlatency_limit = "1s"', "latency_limit and an objective exclude"),
        ('objective = "p99 < 20ms"\nprofile = true', "profile and an objective exclude"),
        ('objective = "p99 < 20ms"\nrun = "10s"', "12 steps, and with p99 < 20ms each must last at least 2 s"),
        ('objective = "p99 < 1s"', "must last at least 10 s"),
    ],
)
def test_what_contradicts_a_search_is_told_with_its_line(read, text, what):
    with pytest.raises(ExperimentError, match=what):
        read(TWO + CELL + text + "\n")


def test_a_search_that_is_too_short_is_told_how_long_it_must_be(read):
    with pytest.raises(ExperimentError, match='write run = "120s" or more'):
        read(TWO + CELL + 'objective = "p99 < 1s"\n')
    assert read(TWO + CELL + 'objective = "p99 < 1s"\nrun = "120s"\n').cells


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (TWO + SEARCH + CELL, "has no objective, other cells have one"),
        ('metric = "sustained_rate"\n' + TWO + CELL, "no cell has an objective to keep"),
        ('metric = "latency_p99"\n' + TWO + SEARCH, "compared by sustained_rate, not latency_p99"),
    ],
)
def test_the_metric_of_a_search_is_no_metric_of_other_cells(read, text, what):
    with pytest.raises(ExperimentError, match=what):
        read(text)


def test_a_search_is_planned_run_by_run_with_free_sessions_and_says_its_steps(plan):
    planned = plan(TWO + SEARCH)
    (design,) = planned.designs
    assert not design.sliced
    assert design.reason == Reason(code="searched")
    assert (design.placement, design.free_because) == (Placement.FREE, Reason(code="rate_free"))
    shown = " ".join(render_plan(planned).split())
    assert "highest rate with p99 below 20 ms, searched in 12 steps of 5 s" in shown
    assert "sustained_rate" in shown
    assert json.loads(plan_json(planned))["cells"][0]["objective"] == "p99 < 20ms"
    assert planned.forecast.seconds_per_block > 2 * 66


def test_slices_and_sysbench_are_refused_with_their_reason(plan):
    with pytest.raises(PlanRefusedError, match=r"slices: .*searched"):
        plan('interleave = "slices"\n' + TWO + SEARCH)
    cell = SEARCH.replace("select-only", "oltp-read-only")
    with pytest.raises(PlanRefusedError, match="does not log the latency of each transaction"):
        plan(TWO + cell)


@pytest.mark.parametrize(("of", "limit"), [("p98", 0.02), ("p99", 0.0), ("p99", float("nan")), ("mean", float("inf"))])
def test_a_damaged_objective_is_none(of, limit):
    with pytest.raises(ValueError, match="is not an objective"):
        Objective(of=of, limit=limit)


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf")])
def test_damaged_rates_of_a_search_are_none(rate):
    with pytest.raises(ValueError, match="no rates"):
        Search(objective=Objective(of="p99", limit=0.02), seconds=2.0, rates=(0.0, rate))
