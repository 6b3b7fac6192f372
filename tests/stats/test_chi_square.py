"""Chi-square against the table of Abramowitz and Stegun (26.8), and against what its definition gives."""

import numpy as np
import pytest

from pgstrata.stats.chi_square import chi_square_point, upper_tail


@pytest.mark.parametrize(
    ("tail", "freedom", "value"),
    [
        (0.975, 1, 0.000982069), (0.975, 2, 0.0506356), (0.975, 4, 0.484419), (0.975, 9, 2.70039),
        (0.025, 1, 5.02389), (0.025, 2, 7.37776), (0.025, 4, 11.1433), (0.025, 9, 19.0228), (0.5, 30, 29.336),
    ],
)  # fmt: skip
def test_points_are_those_of_the_table(tail, freedom, value):
    assert chi_square_point(tail, freedom) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("freedom", [1, 2, 3, 8])
def test_the_tail_is_that_of_sums_of_squares(freedom):
    drawn = (np.random.default_rng(1).normal(size=(200_000, freedom)) ** 2).sum(axis=1)
    for value in (0.5, 2.0, 8.0):
        assert upper_tail(value, freedom) == pytest.approx((drawn >= value).mean(), abs=0.005)


def test_nothing_is_below_zero():
    assert upper_tail(0.0, 1) == upper_tail(0.0, 4) == 1.0
