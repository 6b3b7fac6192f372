"""Means of series whose neighbours are alike: their intervals hold, also in short windows."""

import numpy as np
import pytest

from pgstrata.stats.batches import batch_length, batch_mean, estimate, memory_of, paired_means, shared_memory


def first_order(draws, size, phi):
    """A process of first order with variance 1."""
    noise = draws.normal(size=size + 300)
    values = np.empty(size + 300)
    values[0] = noise[0]
    for place in range(1, size + 300):
        values[place] = phi * values[place - 1] + noise[place]
    return values[300:] * np.sqrt(1 - phi**2)


def differ(window, reference):
    memory = shared_memory([[reference]])
    length = batch_length(memory, [window.size])
    both = [
        batch_mean(each[np.newaxis], np.ones(each.size), batch_length(memory, [each.size]), memory)
        for each in (window, reference)
    ]
    assert length >= 1
    variances = tuple(float(side.covariance[0, 0]) for side in both)
    found = estimate(float(both[0].mean[0] - both[1].mean[0]), variances, tuple(side.freedom for side in both))
    return found is not None and (found.low > 0 or found.high < 0)


@pytest.mark.parametrize(("size", "reference"), [(228, 228), (228, 684), (60, 60), (20, 60)])
@pytest.mark.parametrize("phi", [0.0, 0.6, 0.9])
def test_equal_windows_are_called_different_in_about_one_of_twenty(size, reference, phi):
    draws = np.random.default_rng(7)
    found = [differ(first_order(draws, size, phi), first_order(draws, reference, phi)) for _ in range(250)]
    assert np.mean(found) <= 0.09


def test_a_drop_is_found_where_the_series_forgets_soon():
    draws = np.random.default_rng(8)
    found = [
        differ(1 + 0.2 * first_order(draws, 120, 0.6) - 0.15, 1 + 0.2 * first_order(draws, 240, 0.6))
        for _ in range(100)
    ]
    assert np.mean(found) > 0.8


def test_the_memory_is_that_of_the_process():
    draws = np.random.default_rng(9)
    assert memory_of(draws.normal(size=2000)) < 1.5
    assert 10 < memory_of(first_order(draws, 20_000, 0.9)) < 30
    assert memory_of(np.ones(100)) == 1.0
    assert memory_of(np.empty(0)) == 1.0


def test_too_few_batches_tell_nothing():
    few = batch_mean(np.ones((1, 4)), np.ones(4), 1, 1.0)
    assert few.freedom == 0
    assert estimate(1.0, (float(few.covariance[0, 0]), 0.1), (few.freedom, 5)) is None


def test_seconds_without_a_look_do_not_count():
    values = np.array([[1.0] * 20 + [99.0] * 20])
    found = batch_mean(values, np.array([1.0] * 20 + [0.0] * 20), 2, 1.0)
    assert found.mean[0] == 1.0
    assert found.covariance[0, 0] == 0.0


def test_the_limit_is_beyond_the_interval():
    found = estimate(0.3, (0.01, 0.01), (20, 20))
    assert found.low < 0.3 < found.high
    assert found.limit > found.high - 0.3


def test_a_variance_that_rounding_left_below_zero_is_none():
    found = estimate(0.0, (-3e-21, -3e-21), (9, 9))
    assert (found.low, found.high, found.p) == (0.0, 0.0, 1.0)
    assert estimate(1.0, (-3e-21, 0.01), (9, 9)) == estimate(1.0, (0.0, 0.01), (9, 9))


def paired(draws, number, effect, drift=0.3):
    shared = draws.normal(0, drift, number)
    sides = tuple(np.exp(shared + part + draws.normal(0, 0.02, number))[np.newaxis] * 100 for part in (effect, 0.0))
    weights = np.ones(number), np.ones(number)
    first, second = paired_means(sides, weights, relative=True)
    variances = float(first.covariance[0, 0]), float(second.covariance[0, 0])
    value = float(np.log(first.mean[0] / second.mean[0]))
    return estimate(value, variances, (first.freedom, second.freedom))


def test_what_pairs_have_in_common_is_no_error():
    """The intervals hold the truth in 95 % of such studies, and are as narrow as single pairs scatter."""
    draws = np.random.default_rng(7)
    found = [paired(draws, 9, 0.05) for _ in range(2000)]
    held = np.mean([each.low <= 0.05 <= each.high for each in found])
    assert 0.93 <= held <= 0.97
    assert np.median([each.high - each.low for each in found]) < 0.06


def test_few_pairs_and_steps_that_one_side_does_not_know_give_no_error():
    draws = np.random.default_rng(7)
    assert paired(draws, 4, 0.05) is None
    sides = (np.array([[1.0, np.nan, 3.0]]), np.array([[1.0, 2.0, np.nan]]))
    first, second = paired_means(sides, (np.ones(3), np.ones(3)), relative=False)
    assert (first.mean[0], second.mean[0], first.freedom) == (1.0, 1.0, 0)
    nothing, _ = paired_means((sides[0][:, 1:2], sides[1][:, 1:2]), (np.ones(1), np.ones(1)), relative=True)
    assert np.isnan(nothing.mean).all()


@pytest.mark.parametrize("scale", [1e-200, 1e-80, 1e80, 1e200])
def test_freedoms_do_not_depend_on_the_unit_of_the_variances(scale):
    usual, other = (estimate(0.0, (3.0 * unit, 1.0 * unit), (7, 5)) for unit in (1.0, scale))
    assert other.high == pytest.approx(usual.high * np.sqrt(scale), rel=1e-9)
