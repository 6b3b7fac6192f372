"""Seconds of one run are told from values of independent runs."""

import numpy as np
import pytest

from pgstrata.stats.dependence import follow_each_other, neighbour_correlation


def walk(rng, n, phi):
    noise, values = rng.normal(0, 1, n), np.zeros(n)
    for place in range(1, n):
        values[place] = phi * values[place - 1] + noise[place]
    return values


@pytest.mark.parametrize("n", [8, 12, 20, 40, 100, 1000])
def test_independent_values_hardly_ever_follow_each_other(n):
    rng = np.random.default_rng(n)
    draws = [rng.standard_t(3, n) for _ in range(2000)]
    assert sum(map(follow_each_other, draws)) <= 4


@pytest.mark.parametrize(("n", "phi", "share"), [(60, 0.95, 0.95), (300, 0.8, 0.99), (30, 0.95, 0.6)])
def test_seconds_of_a_run_do(n, phi, share):
    rng = np.random.default_rng(n)
    assert sum(follow_each_other(walk(rng, n, phi)) for _ in range(200)) >= share * 200


def test_few_values_and_equal_ones_tell_nothing():
    assert not follow_each_other([1, 2, 3, 4, 5, 6, 7])
    assert not follow_each_other(np.ones(100))
    assert not follow_each_other([])
    assert neighbour_correlation([]) == neighbour_correlation([3.0]) == 0.0
    assert neighbour_correlation(np.arange(1000.0)) == pytest.approx(1, abs=0.01)
