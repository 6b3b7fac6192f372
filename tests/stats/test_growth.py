"""Differences that grow over the blocks."""

import numpy as np
import pytest

from pgstrata.stats.growth import LEVEL, find_growth


def test_sizes_in_perfect_order_grow_whatever_their_signs():
    found = find_growth([0.01 * k * (-1) ** k for k in range(1, 8)])
    assert found.correlation == pytest.approx(1)
    assert found.is_likely


def test_shrinking_sizes_are_no_growth():
    assert not find_growth([0.01 * k for k in range(12, 0, -1)]).is_likely


@pytest.mark.parametrize("d", [[], [0.1] * 6, [0.1] * 12, [0.1 + 1e-15 * k for k in range(12)]])
def test_few_or_equal_differences_say_nothing(d):
    assert find_growth(d) is None


def test_the_correlation_is_spearmans_ties_included():
    d = np.round(np.random.default_rng(1).normal(0, 1, 24), 1)
    ranks = [(np.abs(d) < abs(x)).sum() + (np.abs(d) <= abs(x)).sum() for x in d]
    assert find_growth(d).correlation == pytest.approx(np.corrcoef(np.arange(24), ranks)[0, 1])


@pytest.mark.parametrize("n", [7, 12, 24])
def test_sizes_in_random_order_are_called_growing_about_as_often_as_promised(n):
    draws = np.random.default_rng(n).standard_t(3, (4000, n))
    assert np.mean([find_growth(d).is_likely for d in draws]) <= 1.3 * LEVEL
