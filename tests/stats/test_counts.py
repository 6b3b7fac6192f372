"""Intervals of counts are those of Garwood, by way of chi-square."""

import pytest

from pgstrata.stats.chi_square import chi_square_point
from pgstrata.stats.counts import count_interval


@pytest.mark.parametrize("count", [3, 4, 10, 100, 300])
def test_both_limits_are_those_of_chi_square(count):
    low, high = count_interval(count)
    assert low == pytest.approx(chi_square_point(0.975, 2 * count) / 2, rel=0.03)
    assert high == pytest.approx(chi_square_point(0.025, 2 * count + 2) / 2, rel=0.001)


def test_of_nothing_seen_only_the_upper_limit_is_above_zero():
    assert count_interval(0) == (0.0, pytest.approx(3.69, rel=0.01))


def test_limits_below_three_are_at_most_too_wide():
    for count in (1, 2):
        low, high = count_interval(count)
        assert 0 < low <= chi_square_point(0.975, 2 * count) / 2
        assert high == pytest.approx(chi_square_point(0.025, 2 * count + 2) / 2, rel=0.002)
