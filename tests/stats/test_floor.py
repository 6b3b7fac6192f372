"""The noise floor."""

import math

import numpy as np
import pytest

from pgstrata.model.answer import Verdict
from pgstrata.stats.floor import noise_floor, outlying, smallest_visible_effect
from pgstrata.stats.rule import Rule, decide_many


def test_the_floor_is_the_scaled_median_size_around_zero():
    assert noise_floor([0.01, -0.03, 0.02]) == pytest.approx(1.4826 * 0.02)


def test_the_floor_of_normal_noise_is_its_standard_deviation():
    assert noise_floor(np.random.default_rng(1).normal(0, 0.02, 20_000)) == pytest.approx(0.02, rel=0.03)


def test_a_floor_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        noise_floor([])


def test_the_visible_effect_shrinks_with_blocks_and_grows_with_the_floor():
    effects = [smallest_visible_effect(0.02, n) for n in range(1, 60)]
    assert effects == sorted(effects, reverse=True)
    assert effects[:2] == [math.inf, math.inf]
    assert all(smallest_visible_effect(0.03, n) >= smallest_visible_effect(0.02, n) for n in range(1, 60))
    assert smallest_visible_effect(0.02, 96) == pytest.approx(smallest_visible_effect(0.02, 24) / 2)


@pytest.mark.parametrize("n", [7, 12, 24])
def test_the_visible_effect_is_found_in_about_four_studies_of_five(n):
    s0 = 0.01
    d = np.random.default_rng(n).normal(smallest_visible_effect(s0, n), s0, (2000, n))
    found = decide_many(list(d), [Rule(delta=0.0)] * len(d))
    assert 0.78 <= np.mean([each.verdict is Verdict.BETTER for each in found]) <= 0.95


@pytest.mark.parametrize("n", [3, 6])
def test_the_visible_effect_of_the_fast_lane_is_found_too(n):
    s0 = 0.03
    d = np.random.default_rng(n).normal(smallest_visible_effect(s0, n), s0, (2000, n))
    found = decide_many(list(d), [Rule(delta=0.0, floor=s0)] * len(d))
    assert np.mean([each.verdict is Verdict.BETTER for each in found]) >= 0.78


@pytest.mark.parametrize("wrong", [-0.01, math.nan, math.inf])
def test_a_floor_that_is_no_scale_is_an_error(wrong):
    with pytest.raises(ValueError, match="finite and not negative"):
        smallest_visible_effect(wrong, 12)


def test_outliers_are_differences_beyond_the_widest_threshold_of_the_fast_lane():
    assert outlying([0.048, -0.049, 0.3, 0.001], 0.01) == 2
    assert outlying([0.048, -0.049, 0.3, 0.001], 0.1) == 1
