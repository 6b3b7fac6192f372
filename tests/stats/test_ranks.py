"""Ranks, interval and estimate, against slow definitions written out anew."""

from itertools import combinations_with_replacement, pairwise
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_sample import capped_interval, hodges_lehmann
from pgstrata.stats.boundaries import ALPHA, ALPHA_EQ, boundaries_of
from pgstrata.stats.ranks import (
    capped_intervals,
    capped_scores,
    signed_rank_sums,
    walsh_averages,
)

FORMER = boundaries_of(24)
C_DIFF, C_EQ = FORMER.at(ALPHA), FORMER.at(ALPHA_EQ)

# Multiples of 1/64 are exact in binary, so that the slow definitions below meet true ties and zeros.
coarse = st.lists(st.integers(-6, 6).map(lambda k: k / 64), min_size=7, max_size=12)
fine = st.lists(st.integers(-(10**6), 10**6).map(lambda k: k / 1e7), min_size=7, max_size=24)


def slow_sums(d, theta):
    sizes = [abs(x - theta) for x in d]
    cap = -(-len(d) // 2)
    scores = [min(sum(s < size for s in sizes) + (sizes.count(size) + 1) / 2, cap) for size in sizes]
    plus = sum(score for score, x in zip(scores, d, strict=True) if x >= theta)
    minus = sum(score for score, x in zip(scores, d, strict=True) if x <= theta)
    return plus, minus


def slow_interval(d, critical):
    """All Walsh averages and all gaps between them, one by one."""
    averages = sorted({(a + b) / 2 for a, b in combinations_with_replacement(d, 2)})
    kept = [w for w in averages if min(slow_sums(d, w)) > critical]
    for before, after in pairwise(averages):
        if min(slow_sums(d, (before + after) / 2)) > critical:
            kept += [before, after]
    return min(kept), max(kept)


@pytest.mark.parametrize(("n", "scores"), [(1, [1]), (4, [1, 2, 2, 2]), (7, [1, 2, 3, 4, 4, 4, 4])])
def test_scores_are_ranks_capped_at_half_the_sample(n, scores):
    assert capped_scores(n).tolist() == scores


def test_walsh_averages_are_the_sorted_means_of_all_pairs_with_themselves():
    assert walsh_averages([3.0, 1.0]).tolist() == [1.0, 2.0, 3.0]


def test_the_estimate_is_the_median_of_the_walsh_averages():
    d = [0.5, -1.0, 2.0, 0.25]
    assert hodges_lehmann(d) == median((a + b) / 2 for a, b in combinations_with_replacement(d, 2))


@pytest.mark.parametrize("function", [walsh_averages, hodges_lehmann, lambda d: signed_rank_sums(d, 0.0)])
def test_without_differences_there_is_an_error(function):
    with pytest.raises(ValueError, match="at least one"):
        function([])


def test_equal_sizes_share_a_midrank_before_the_cap():
    # |d| = 1 1 3 3 3: midranks 1.5 1.5 4 4 4, capped at 3
    plus, minus = signed_rank_sums([1.0, -1.0, 3.0, 3.0, -3.0], 0.0)
    assert (plus, minus) == (1.5 + 3 + 3, 1.5 + 3)


def test_a_difference_equal_to_theta_counts_in_both_sums():
    plus, minus = signed_rank_sums([2.0, 2.0, 5.0, 1.0], 2.0)
    assert (plus, minus) == (1.5 + 1.5 + 2, 1.5 + 1.5 + 2)


def test_residues_of_floating_point_are_ties_and_zeros():
    d = np.array([0.1, 0.3, 0.7, 0.7])
    theta = (0.1 + 0.3) / 2
    assert d[0] - theta != -(d[1] - theta)  # the residue is there
    plus, minus = signed_rank_sums(d, theta)
    assert (plus, minus) == (1.5 + 2 + 2, 1.5)


@given(coarse, st.integers(-6, 6).map(lambda k: k / 128))
@settings(max_examples=60)
def test_the_sums_are_those_of_the_definition(d, theta):
    assert tuple(float(s) for s in signed_rank_sums(d, theta)) == slow_sums(d, theta)


@given(coarse)
@settings(max_examples=60)
def test_the_interval_is_the_one_found_by_trying_every_place(d):
    for level in (C_DIFF, C_EQ):
        critical = level.critical(len(d))
        assert capped_interval(d, critical) == slow_interval(d, critical)


@given(fine)
@settings(max_examples=60)
def test_the_interval_contains_the_estimate_and_grows_with_the_confidence(d):
    low, high = capped_interval(d, C_DIFF.critical(len(d)))
    inner_low, inner_high = capped_interval(d, C_EQ.critical(len(d)))
    assert low <= inner_low <= hodges_lehmann(d) <= inner_high <= high
    if (widest := FORMER.at(0.01).critical(len(d))) is not None:
        assert capped_interval(d, widest)[0] <= low


@given(fine, st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_the_order_of_the_differences_changes_nothing(d, random):
    shuffled = random.sample(d, len(d))
    critical = C_DIFF.critical(len(d))
    assert capped_interval(shuffled, critical) == capped_interval(d, critical)
    assert hodges_lehmann(shuffled) == hodges_lehmann(d)


@given(fine)
@settings(max_examples=40)
def test_mirrored_differences_mirror_the_interval(d):
    critical = C_DIFF.critical(len(d))
    low, high = capped_interval(d, critical)
    assert capped_interval([-x for x in d], critical) == (-high, -low)


@given(fine, st.integers(-50, 50).map(lambda k: k / 100))
@settings(max_examples=40)
def test_a_shift_of_all_differences_shifts_the_interval(d, shift):
    critical = C_DIFF.critical(len(d))
    low, high = capped_interval(d, critical)
    shifted = capped_interval([x + shift for x in d], critical)
    assert shifted == pytest.approx((low + shift, high + shift), abs=1e-11)


def test_the_first_interval_goes_from_the_smallest_to_the_largest_difference():
    d = [0.01, 0.02, -0.005, 0.04, 0.03, 0.011, 0.9]
    assert capped_interval(d, C_DIFF.critical(7)) == (-0.005, 0.9)


def test_equal_values_everywhere_give_an_interval_of_one_point():
    for value in (0.0, 0.1, np.log(1.1)):
        assert capped_interval([value] * 10, C_DIFF.critical(10)) == (value, value)


def test_an_outlier_does_not_take_the_top_rank_alone():
    # Its uncapped rank, 13, would exceed the critical value of 8 at 13 blocks, and zero would be inside.
    calm = [0.05 + 0.001 * k for k in range(12)]
    near, far = (capped_interval([*calm, -outlier], C_DIFF.critical(13)) for outlier in (0.5, 50.0))
    assert near == far
    assert near[0] > 0


def test_many_samples_at_once_give_what_each_gives_alone():
    d = np.random.default_rng(5).normal(0, 0.02, (20, 12)).round(3)
    low, high = capped_intervals(d, walsh_averages(d), C_DIFF.critical(12))
    assert list(zip(low, high, strict=True)) == [capped_interval(row, C_DIFF.critical(12)) for row in d]


def test_a_critical_value_that_leaves_nothing_is_an_error():
    with pytest.raises(ValueError, match="leaves no interval"):
        capped_interval([0.1, 0.2, 0.3], 3)
