"""What the seconds of a cell's runs are worth."""

from dataclasses import replace

import numpy as np
import pytest

from pgstrata.compare.noise.within_run import weigh_seconds
from pgstrata.model.metrics import Series
from pgstrata.model.runs import Validity
from studies import BASE, CELL, OTHER, make_run

SECONDS = 60


def ar1(random, phi):
    noise = random.normal(size=SECONDS)
    values = np.empty(SECONDS)
    values[0] = noise[0]
    for second in range(1, SECONDS):
        values[second] = phi * values[second - 1] + np.sqrt(1 - phi**2) * noise[second]
    return 1000 + 40 * values


def study(*, phi=0.0, blocks=10, **rest):
    random = np.random.default_rng(7)
    runs = []
    for block in range(1, blocks + 1):
        for environment in (BASE, OTHER):
            values = ar1(random, phi)
            series = Series(metric="tps", times=tuple(range(1, SECONDS + 1)), values=tuple(values.tolist()))
            runs.append(replace(make_run(environment, block, tps=float(values.mean()), **rest), series=(series,)))
    return runs


def test_runs_are_counted_and_independent_seconds_are_worth_what_they_are():
    found = weigh_seconds(study(), CELL)
    assert (found.runs, found.seconds) == (20, SECONDS)
    assert found.worth == pytest.approx(SECONDS, rel=0.2)


def test_seconds_that_hang_on_each_other_are_worth_less():
    """(1 - phi) / (1 + phi) of them for an autoregressive series: 15 of 60."""
    assert weigh_seconds(study(phi=0.6, blocks=20), CELL).worth == pytest.approx(15, rel=0.4)


@pytest.mark.parametrize("changes", [{"together": "t"}, {"validity": Validity.INVALID}, {"cell": "another"}])
def test_runs_in_slices_invalid_ones_and_those_of_other_cells_do_not_count(changes):
    assert weigh_seconds([replace(run, **changes) for run in study()], CELL) is None
