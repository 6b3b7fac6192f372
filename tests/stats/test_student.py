"""Student's t against printed tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.stats.student import is_shift, two_sided_point, two_sided_tail, welch_interval


@pytest.mark.parametrize(
    ("freedom", "level", "point"),
    [(1, 0.05, 12.706), (2, 0.05, 4.3027), (3, 0.01, 5.8409), (4, 0.05, 2.7764), (5, 0.001, 6.8688), (11, 0.05, 2.201),
     (30, 0.01, 2.75), (100, 0.05, 1.984)],
)  # fmt: skip
def test_points_are_those_of_the_tables(freedom, level, point):
    assert two_sided_point(level, freedom) == pytest.approx(point, abs=6e-4)
    assert two_sided_tail(-point, freedom) == pytest.approx(level, rel=2e-3)


def test_nothing_is_beyond_infinity_and_all_beyond_zero():
    assert two_sided_tail(float("inf"), 3) == 0
    assert two_sided_tail(0.0, 3) == pytest.approx(1)


def test_one_in_a_hundred_samples_without_a_shift_is_taken_for_one_with():
    rng = np.random.default_rng(12)
    for size in (6, 12, 40):
        assert np.mean([is_shift(rng.normal(0, 1, size)) for _ in range(4000)]) == pytest.approx(0.01, abs=0.006)


def test_what_all_values_share_is_seen_and_five_are_too_few():
    assert is_shift([-0.1, -0.12, -0.09, -0.11, -0.1, -0.08])
    assert is_shift([0.1] * 6)
    assert not is_shift([-0.1] * 5)
    assert not is_shift([0.0] * 10)
    assert not is_shift([])


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=20))
def test_the_direction_of_a_shift_does_not_matter(shifts):
    assert is_shift(shifts) == is_shift([-shift for shift in shifts])


def test_means_are_compared_by_welchs_form():
    # 4.4 degrees of freedom, rounded down to 4
    low, high = welch_interval([1, 2, 4], [2, 3, 7, 9], 0.05)
    error = ((7 / 3) / 3 + (131 / 12) / 4) ** 0.5
    assert (low + high) / 2 == pytest.approx(7 / 3 - 21 / 4)
    assert (high - low) / 2 == pytest.approx(2.7764 * error, rel=1e-4)


def test_means_without_scatter_have_an_interval_without_width():
    assert welch_interval([2.0, 2.0], [1.0, 1.0, 1.0], 0.05) == (1.0, 1.0)


@pytest.mark.parametrize("scatter", [(1, 1), (1, 5), (5, 1)])
def test_equal_means_differ_in_at_most_one_of_twenty_whatever_their_scatter(scatter):
    rng = np.random.default_rng(13)
    spans = [welch_interval(*(rng.normal(0, sd, 3) for sd in scatter), 0.05) for _ in range(4000)]
    assert np.mean([not low <= 0 <= high for low, high in spans]) < 0.055
