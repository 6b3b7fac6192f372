"""What is found by counting against what is found by writing everything down."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_sample import capped_interval
from pgstrata.stats import large
from pgstrata.stats.boundaries import fixed_critical
from pgstrata.stats.large import capped_centre_of_many, capped_interval_of_many, shift_quantiles
from pgstrata.stats.ranks import capped_centres, walsh_averages
from pgstrata.stats.rule import Rule, decide_once

coarse = st.lists(st.integers(-6, 6).map(lambda k: k / 64), min_size=8, max_size=60)
fine = st.lists(st.integers(-(10**6), 10**6).map(lambda k: k / 1e7), min_size=8, max_size=60)
NEAR = pytest.approx


@given(coarse | fine)
@settings(max_examples=80, deadline=None)
def test_the_estimate_lies_in_the_middle_of_all_intervals(d):
    centre = capped_centre_of_many(np.array(d))
    assert capped_centre_of_many(-np.array(d)) == NEAR(-centre, abs=1e-12)
    for alpha in (0.001, 0.045, 0.5, 0.9):
        if (critical := fixed_critical(len(d), alpha)) is not None:
            low, high = capped_interval(d, critical)
            assert low - 1e-12 <= centre <= high + 1e-12


@pytest.mark.parametrize("n", [300, 900, 3000])
def test_of_many_skewed_differences_too(n):
    """The median of the Walsh averages lay outside its interval, once with the other sign."""
    for seed in range(20):
        d = np.random.default_rng(seed).lognormal(0, 1.5, n) - 1
        found = decide_once([d], [Rule(delta=0.03)])[0].estimate
        assert found.interval.low <= found.centre <= found.interval.high
        assert found.centre < float(np.mean(d))


@pytest.mark.parametrize("n", [*range(6, 61), 61, 80, 99, 130, 200, 201])
def test_of_two_groups_of_differences_too(n):
    """Where the upper ranks lie on one side, the median of the Walsh averages is as far off as it can be."""
    for few in range(max(1, n // 5), n // 2 + 1, max(1, n // 40)):
        d = np.concatenate([np.linspace(0.0, 0.01, n - few), np.linspace(1.0, 1.01, few)])
        for sample in (d, -d):
            found = decide_once([sample], [Rule(delta=0.03, alpha=0.10)])[0].estimate
            assert found.interval.low <= found.centre <= found.interval.high


@given(coarse | fine)
@settings(max_examples=80, deadline=None)
def test_written_down_and_counted_centres_agree(d):
    array = np.array([d])
    (written,) = capped_centres(array, walsh_averages(array))
    assert written == NEAR(capped_centre_of_many(np.array(d)), abs=1e-12)


@given(coarse | fine)
@settings(max_examples=80, deadline=None)
def test_the_interval_is_that_of_the_walsh_averages(d):
    critical = fixed_critical(len(d), 0.045)
    found = capped_interval_of_many(np.array(d), critical)
    low, high = capped_interval(d, critical)
    assert (found["low"], found["high"]) == NEAR((low, high), abs=3e-12)
    assert found["low"] <= low + 1e-13
    assert found["high"] >= high - 1e-13


def test_an_end_at_zero_does_not_exclude_zero():
    # Pairs of opposite signs: zero is a Walsh average at which the sums jump.
    d = np.concatenate([np.linspace(0.01, 5.0, 200), -np.linspace(0.01, 5.0, 200)[:60]])
    for critical in range(2000, 6000, 37):
        found = capped_interval_of_many(d, critical)
        low, high = capped_interval(d, critical)
        assert (found["low"], found["high"]) == NEAR((low, high), abs=2e-11)
        assert not (low == 0.0 and found["low"] > 0.0)


def test_a_critical_value_that_leaves_nothing_is_an_error():
    with pytest.raises(ValueError, match="leaves no interval"):
        capped_interval_of_many(np.zeros(3), 3)


@given(fine, coarse)
@settings(max_examples=60, deadline=None)
def test_counted_and_sorted_shifts_agree(x, y):
    count = len(x) * len(y)
    ranks = (1, (count + 1) // 2, count)
    sorted_ = shift_quantiles(np.array(x), np.array(y), ranks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "PAIR_LIMIT", 0)
        counted = shift_quantiles(np.array(x), np.array(y), ranks)
    assert counted == NEAR(sorted_, abs=1e-12)
