"""The noise floor."""

import numpy as np
import pytest

from pgstrata.stats.floor import noise_floor, outlying


def test_the_floor_is_the_scaled_median_size_around_zero():
    assert noise_floor([0.01, -0.03, 0.02]) == pytest.approx(1.4826 * 0.02)


def test_the_floor_of_normal_noise_is_its_standard_deviation():
    assert noise_floor(np.random.default_rng(1).normal(0, 0.02, 20_000)) == pytest.approx(0.02, rel=0.03)


def test_a_floor_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        noise_floor([])


def test_outliers_are_differences_beyond_five_percent_and_two_and_a_half_floors():
    assert outlying([0.048, -0.049, 0.3, 0.001], 0.01) == 2
    assert outlying([0.048, -0.049, 0.3, 0.001], 0.1) == 1
