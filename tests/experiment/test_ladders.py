"""Ladders of clients until throughput falls: read, refused, planned."""

import json

import pytest

from pgstrata.drivers.registry import driver_capabilities
from pgstrata.errors import ExperimentError
from pgstrata.model.plan import HostCapacity
from pgstrata.plan import make_plan
from pgstrata.report.planning.plan import plan_json, render_plan
from pgstrata.workloads import builtin_workloads

WORKLOADS = builtin_workloads()
TWO = '[factors]\nserver = ["18", "16"]\n'
CELL = '[[cells]]\nworkload = "select-only"\nscale = 1\nclients = {}\n'
LADDER = '{ from = 1, to = 64, steps = 7, until = "throughput falls" }'


@pytest.fixture(scope="module")
def read(parse):
    return lambda text: parse(text, workloads=WORKLOADS, drivers=driver_capabilities())


def planned(experiment):
    capacity = HostCapacity(memory=16 << 30, cpus=4, free_disk=1 << 40)
    return make_plan(experiment, WORKLOADS, capacity, drivers=driver_capabilities())


def test_each_step_is_a_cell_of_a_ladder(read):
    cells = read(TWO + CELL.format(LADDER)).cells
    assert [cell.clients for cell in cells] == [1, 2, 4, 8, 16, 32, 64]
    assert all(cell.until_falls for cell in cells)
    assert not any(cell.until_falls for cell in read(TWO + CELL.format("[1, 2, 4]")).cells)


def test_the_same_clients_with_and_without_a_ladder_are_told_apart(read):
    cells = read(TWO + CELL.format(LADDER) + CELL.format("64")).cells
    assert len({cell.identity for cell in cells}) == 8


@pytest.mark.parametrize(
    ("clients", "more", "what"),
    [
        ('{ from = 1, to = 64, steps = 7, until = "it hurts" }', "", "'it hurts' is not a valid condition for until"),
        ("{ from = 1, to = 64, steps = 7, until = 3 }", "", "condition for until must be a string"),
        ('{ from = 1, to = 2, steps = 2, until = "throughput falls" }', "", "a ladder of 2 numbers of clients"),
        (LADDER, "rate = 500\n", "rate and a ladder until throughput falls exclude each other"),
        (LADDER, 'objective = "p99 < 20ms"\n', "objective and a ladder until throughput falls exclude each other"),
    ],
)
def test_what_is_no_ladder_is_refused_with_its_line(read, clients, more, what):
    with pytest.raises(ExperimentError, match=what):
        read(TWO + CELL.format(clients) + more)


def test_the_plan_tells_that_steps_may_be_left_out_and_counts_the_climb(read):
    with_ladder = planned(read(TWO + CELL.format(LADDER)))
    without = planned(read(TWO + CELL.format(LADDER.replace(', until = "throughput falls"', ""))))
    assert "unless throughput falls with fewer clients" in " ".join(render_plan(with_ladder).split())
    assert "unless throughput falls" not in " ".join(render_plan(without).split())
    assert [cell["until_falls"] for cell in json.loads(plan_json(with_ladder))["cells"]] == [True] * 7
    climb = with_ladder.forecast.seconds_total - without.forecast.seconds_total
    assert climb == pytest.approx(2 * 7 * 6)
    assert with_ladder.identity != without.identity
