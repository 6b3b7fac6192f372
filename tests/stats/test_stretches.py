"""A stretch with a level of its own is found where it is, and its intervals hold the truth."""

import numpy as np
import pytest

from pgstrata.stats.stretches import find_stretch


def test_begin_and_end_are_in_their_intervals():
    draws, inside = np.random.default_rng(5), []
    for _ in range(12):
        begin, end = 50 + int(draws.integers(0, 20)), 100 + int(draws.integers(0, 20))
        values = draws.poisson(2, 150).astype(float)
        values[begin:end] += draws.poisson(2, end - begin)
        found = find_stretch(values, 2, 1)
        inside.append(found.begin_interval[0] <= begin <= found.begin_interval[1])
        inside.append(found.end_interval[0] <= end <= found.end_interval[1])
        assert found.ends
    assert np.mean(inside) >= 0.85


def test_a_stretch_that_lasts_has_no_end():
    values = np.concatenate((np.random.default_rng(1).normal(1, 0.1, 100), np.random.default_rng(2).normal(5, 0.1, 50)))
    found = find_stretch(values, 1, 1)
    assert (found.begin, found.end, found.ends) == (100, 150, False)
    assert found.begin_interval[0] >= 98
    assert found.begin_interval[1] <= 102


@pytest.mark.parametrize("values", [np.ones(100), np.arange(5.0), np.empty(0)])
def test_where_there_is_nothing_nothing_is_found(values):
    assert find_stretch(values, 1, 1) is None
