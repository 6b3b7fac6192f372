"""Fixed rates as shares of the slowest environment's maximum; with the real workloads."""

import json

import pytest

from pgstrata.drivers.registry import driver_capabilities
from pgstrata.errors import ExperimentError
from pgstrata.plan import make_plan
from pgstrata.report.planning.plan import plan_json, render_plan
from pgstrata.workloads import builtin_workloads

WORKLOADS = builtin_workloads()
TWO = '[factors]\nserver = ["18", "16"]\n'
CELL = '[[cells]]\nworkload = "select-only"\nscale = 1\nclients = 2\n'


@pytest.fixture(scope="module")
def read(parse):
    return lambda text: parse(text, workloads=WORKLOADS, drivers=driver_capabilities())


def test_a_list_of_rates_makes_a_cell_of_each(read):
    cells = read(TWO + CELL + 'rate = [500, "80 % of maximum", "50% of maximum"]\n').cells
    assert [(cell.rate, cell.rate_share) for cell in cells] == [(500.0, None), (None, 0.8), (None, 0.5)]
    names = ["select-only-s1-c2-r500", "select-only-s1-c2-r80pct", "select-only-s1-c2-r50pct"]
    assert [cell.identity for cell in cells] == names
    assert all(cell.paced for cell in cells)


@pytest.mark.parametrize(
    ("rate", "what"),
    [
        ('"0 % of maximum"', "a rate cannot be 0 % of maximum"),
        ('"150 % of maximum"', "150 % of maximum cannot be kept"),
        ('"-5 % of maximum"', "is not a rate"),
        ('"fast"', "'fast' is not a rate"),
        ("[]", "the list of rates is empty"),
        ('["80 % of maximum", "80% of maximum"]', "is listed twice"),
        ("0", "above zero"),
        ("true", "above zero"),
    ],
)
def test_a_rate_that_nobody_can_keep_has_a_message(read, rate, what):
    with pytest.raises(ExperimentError, match=what):
        read(TWO + CELL + f"rate = {rate}\n")


def test_the_plan_says_when_a_share_is_measured(read, capacity):
    planned = make_plan(
        read(TWO + CELL + 'rate = "80 % of maximum"\n'), WORKLOADS, capacity, drivers=driver_capabilities()
    )
    assert not planned.designs[0].sliced
    shown = " ".join(render_plan(planned).split())
    assert "at 80 % of the slowest environment's maximum, measured before the first block" in shown
    assert json.loads(plan_json(planned))["cells"][0]["rate_share"] == 0.8
