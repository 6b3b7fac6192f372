"""The shift of each quantile, block by block."""

import math

import numpy as np
import pytest

from pgstrata.stats.shift import QUANTILES, shift_function, supported


def test_lower_latency_is_a_shift_above_zero():
    base = np.tile(np.linspace(0.001, 0.011, len(QUANTILES)), (3, 1))
    for shift in shift_function(base / 1.1, base, [1, 2, 5]):
        assert shift.series.d == pytest.approx([math.log(1.1)] * 3)
        assert shift.series.blocks == (1, 2, 5)
        assert shift.centre == pytest.approx(math.log(1.1))


def test_swapped_arms_and_directions_change_the_sign():
    rng = np.random.default_rng(1)
    values, base = rng.uniform(1, 2, (2, 4, 3))
    levels = (0.1, 0.5, 0.9)
    one = shift_function(values, base, range(4), quantiles=levels)
    other = shift_function(base, values, range(4), quantiles=levels)
    higher = shift_function(values, base, range(4), quantiles=levels, higher_is_better=True)
    for a, b, c in zip(one, other, higher, strict=True):
        assert a.series.d == pytest.approx(-b.series.d)
        assert a.series.d == pytest.approx(-c.series.d)


def test_a_tail_can_worsen_while_the_median_improves():
    shifts = shift_function([[0.9, 3.0]] * 7, [[1.0, 2.0]] * 7, range(7), quantiles=(0.5, 0.99))
    assert shifts[0].centre > 0 > shifts[1].centre


@pytest.mark.parametrize("value", [math.nan, 0.0, -1.0, math.inf])
def test_a_block_without_a_usable_quantile_is_left_out_of_that_quantile_alone(value):
    values = np.ones((3, 2))
    values[1, 1] = value
    first, second = shift_function(values, np.ones((3, 2)), [1, 2, 3], quantiles=(0.5, 0.99))
    assert first.series.blocks == (1, 2, 3)
    assert second.series.blocks == (1, 3)


def test_a_quantile_that_no_block_has_has_no_centre():
    (shift,) = shift_function([[math.nan]], [[1.0]], [1], quantiles=(0.99,))
    assert (shift.centre, shift.series.blocks) == (None, ())


@pytest.mark.parametrize(("values", "blocks"), [([[1.0]], [1, 2]), ([[1.0, 2.0]], [1]), ([1.0], [1])])
def test_shapes_that_do_not_belong_together_are_refused(values, blocks):
    with pytest.raises(ValueError, match="are not"):
        shift_function(values, [[1.0]], blocks, quantiles=(0.5,))


def test_a_quantile_needs_a_hundred_samples_beyond_it():
    assert supported([1000, 999, 10_000], (0.1, 0.9, 0.99)).tolist() == [
        [True, True, False],
        [False, False, False],
        [True, True, True],
    ]
