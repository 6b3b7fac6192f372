"""What the seconds of a cell came to: cuts counted by block, unsteady runs, and what is left of a run worth."""

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


def study(*, phi=0.0, warming=0.0, blocks=10, **rest):
    random = np.random.default_rng(7)
    runs = []
    for block in range(1, blocks + 1):
        for environment in (BASE, OTHER):
            values = ar1(random, phi) * (1 - warming * np.exp(-np.arange(SECONDS) / 5))
            series = Series(metric="tps", times=tuple(range(1, SECONDS + 1)), values=tuple(values.tolist()))
            runs.append(replace(make_run(environment, block, tps=float(values.mean()), **rest), series=(series,)))
    return runs


def test_without_a_warm_up_nothing_is_cut_and_the_whole_run_counts():
    found = weigh_seconds(study(), CELL)
    assert (found.blocks, found.cut_blocks, found.shortest, found.longest) == (10, 0, 0, 0)
    assert (found.runs, found.unsteady, found.seconds) == (20, 0, SECONDS)
    assert found.worth == pytest.approx(SECONDS, rel=0.2)


def test_seconds_that_hang_on_each_other_are_worth_less():
    """(1 - phi) / (1 + phi) of them for an autoregressive series: 15 of 60."""
    assert weigh_seconds(study(phi=0.6, blocks=20), CELL).worth == pytest.approx(15, rel=0.4)


def test_cuts_are_counted_by_block_and_leave_shorter_runs():
    found = weigh_seconds(study(warming=0.5), CELL)
    assert 5 <= found.cut_blocks <= 10
    assert 5 <= found.shortest <= found.longest <= SECONDS // 2
    assert SECONDS // 2 <= found.seconds < SECONDS


@pytest.mark.parametrize("changes", [{"together": "t"}, {"validity": Validity.INVALID}, {"cell": "another"}])
def test_runs_in_slices_invalid_ones_and_those_of_other_cells_do_not_count(changes):
    assert weigh_seconds([replace(run, **changes) for run in study()], CELL) is None
