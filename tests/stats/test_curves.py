"""The interpolant, against what its authors say of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.stats.curves import band_at, chord_residuals, pchip

heights = st.lists(st.floats(-5, 5), min_size=3, max_size=9)


def test_the_points_themselves_are_met():
    x, y = np.array([0.0, 1.0, 3.0, 4.0]), np.array([2.0, 5.0, 5.5, 9.0])
    assert [float(pchip(x, y, place)) for place in x] == pytest.approx(y.tolist())


def test_two_points_are_joined_by_a_line():
    assert float(pchip(np.array([0.0, 4.0]), np.array([1.0, 3.0]), 1.0)) == pytest.approx(1.5)


def test_a_line_stays_a_line():
    x = np.array([0.0, 0.3, 1.0, 2.5, 4.0])
    assert float(pchip(x, 2 * x + 1, 1.7)) == pytest.approx(4.4)


def test_a_known_value_is_met():
    # By hand: slopes 1 and 3, inner derivative 6 / (3 / 1 + 3 / 3) = 1.5, first one (3 * 1 - 3) / 2 = 0.
    y = np.array([0.0, 1.0, 4.0])
    assert float(pchip(np.array([0.0, 1.0, 2.0]), y, 0.5)) == pytest.approx(0.5 - 0.125 * 1.5)


@given(heights, st.floats(0, 1))
@settings(max_examples=80)
def test_between_two_points_the_curve_stays_between_them(y, share):
    values = np.array(y)
    x = np.arange(len(y), dtype=float)
    at = share * (len(y) - 1)
    k = min(int(at), len(y) - 2)
    assert min(values[k], values[k + 1]) - 1e-9 <= float(pchip(x, values, at)) <= max(values[k], values[k + 1]) + 1e-9


def test_what_two_neighbours_and_their_lines_leave_open_is_the_band():
    x = np.arange(5.0)
    low, high = band_at(x, np.array([0.0, 1.0, 7.0, 2.0, 2.0]), 2)
    assert float(low) == pytest.approx(1.5)  # the line through the neighbours
    assert float(high) == pytest.approx(2.0)  # the lower one of the two lines
    assert chord_residuals(x, np.array([0.0, 1.0, 7.0, 2.0, 2.0]))[1] == pytest.approx(5.5)


def test_a_straight_curve_leaves_nothing_open():
    x = np.log([1, 2, 4, 8, 16])
    low, high = band_at(x, 0.5 * x, 2)
    assert float(high - low) == pytest.approx(0.0, abs=1e-12)


@given(st.lists(st.floats(-3, 3), min_size=5, max_size=5))
@settings(max_examples=60)
def test_a_curve_that_bends_one_way_only_lies_in_its_band(slopes):
    x = np.cumsum([0.0, 1.0, 0.7, 1.3, 0.9, 1.1])
    y = np.concatenate([[0.0], np.cumsum(np.sort(slopes) * np.diff(x))])
    for curve in (y, -y):
        for point in range(1, 5):
            low, high = band_at(x, curve, point)
            if 2 <= point <= 3:
                assert low - 1e-9 <= curve[point] <= high + 1e-9


def test_bands_of_many_blocks_are_those_of_each():
    x = np.log([1, 2, 4, 8, 16, 32])
    y = np.random.default_rng(1).normal(0, 1, (4, 6))
    together = band_at(x, y, 3)
    for row, low, high in zip(y, *together, strict=True):
        assert (low, high) == pytest.approx(tuple(float(end) for end in band_at(x, row, 3)))
