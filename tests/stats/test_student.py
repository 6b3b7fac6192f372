"""Student's t against printed tables."""

import pytest

from pgstrata.stats.student import two_sided_point, two_sided_tail


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
