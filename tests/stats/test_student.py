"""Student's t against printed tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.stats.student import is_shift, two_sided_point, two_sided_tail


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
