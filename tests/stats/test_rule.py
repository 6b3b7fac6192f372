"""Verdicts on samples, and how often they are wrong."""

import math

import numpy as np
import pytest

from pgstrata.model.answer import Verdict
from pgstrata.stats.rule import Estimate, LogInterval, estimate_many, judge

DELTA = math.log(1.03)


def verdict_on(d):
    (estimate,) = estimate_many([np.array(d, dtype=float)])
    return judge(estimate, delta=DELTA)


def estimate(low, high, eq_low, eq_high):
    return Estimate(
        n=12,
        centre=(low + high) / 2,
        interval=LogInterval(low=low, high=high),
        equivalence=LogInterval(low=eq_low, high=eq_high),
    )


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (estimate(0.01, 0.05, 0.02, 0.04), Verdict.BETTER),
        (estimate(-0.05, -0.01, -0.04, -0.02), Verdict.WORSE),
        (estimate(0.01, 0.02, 0.012, 0.018), Verdict.NEGLIGIBLE),
        (estimate(-0.02, -0.01, -0.018, -0.012), Verdict.NEGLIGIBLE),
        (estimate(-0.04, 0.02, -0.02, 0.01), Verdict.EQUIVALENT),
        (estimate(-0.04, 0.02, -0.035, 0.01), Verdict.INCONCLUSIVE),
        (estimate(0.0, 0.05, 0.01, 0.04), Verdict.INCONCLUSIVE),
        (estimate(1e-17, 0.05, 0.01, 0.04), Verdict.INCONCLUSIVE),
        (estimate(0.01, DELTA, 0.02, 0.025), Verdict.BETTER),
        (Estimate(n=6, centre=0.3, interval=None, equivalence=None), Verdict.INSUFFICIENT),
        (None, Verdict.INSUFFICIENT),
    ],
)
def test_the_verdict_follows_from_the_two_intervals(found, verdict):
    assert judge(found, delta=DELTA) is verdict


def test_the_interval_excludes_zero_only_beyond_the_boundary():
    # At 11 blocks the boundary is 2: a single loser of rank 2 is beyond it, one of rank 3 is not.
    assert verdict_on([0.06, -0.07, *np.linspace(0.08, 0.2, 9)]) is Verdict.BETTER
    assert verdict_on([0.05, 0.06, -0.07, *np.linspace(0.08, 0.2, 8)]) is Verdict.INCONCLUSIVE


def test_seven_blocks_are_never_enough():
    assert verdict_on([0.5] * 7) is Verdict.INSUFFICIENT
    assert verdict_on([0.5] * 8) is Verdict.BETTER


def test_equal_arms_are_equivalent():
    assert verdict_on([0.0] * 8) is Verdict.EQUIVALENT


def test_more_blocks_than_planned_for_are_refused():
    with pytest.raises(ValueError, match="60 blocks"):
        verdict_on([0.1] * 61)


def test_samples_of_mixed_sizes_come_back_in_their_order():
    samples = [np.full(n, n / 100) for n in (3, 8, 3, 7, 24)]
    assert [(found.n, round(found.centre, 9)) for found in estimate_many(samples)] == [
        (len(sample), sample[0]) for sample in samples
    ]


@pytest.mark.parametrize("n", [8, 12])
@pytest.mark.parametrize("zeros", [0.0, 0.2])
def test_equal_arms_are_called_different_in_at_most_five_percent(n, zeros):
    rng = np.random.default_rng(n)
    d = rng.normal(0, 0.02, (3000, n)) * np.where(rng.random((3000, n)) < 0.05, 15, 1)
    d[rng.random(d.shape) < zeros] = 0.0
    wrong = sum(found.interval.excludes_zero for found in estimate_many(list(d)))
    assert wrong / len(d) <= 0.05


@pytest.mark.parametrize("n", [8, 12])
def test_the_interval_covers_the_truth_in_at_least_ninety_five_percent(n):
    d = np.random.default_rng(n).standard_t(3, (2000, n)) * 0.02 + 0.07
    covered = sum(found.interval.low <= 0.07 <= found.interval.high for found in estimate_many(list(d)))
    assert covered / len(d) >= 0.95


@pytest.mark.parametrize(("n", "outliers"), [(8, 0.0), (12, 0.0), (24, 0.05)])
def test_an_effect_of_ten_percent_is_found(n, outliers):
    rng = np.random.default_rng(10)
    d = rng.normal(math.log(1.1), 0.03, (500, n))
    d[rng.random(d.shape) < outliers] -= 0.4
    verdicts = [judge(found, delta=DELTA) for found in estimate_many(list(d))]
    assert verdicts.count(Verdict.BETTER) / len(verdicts) >= 0.95
    assert Verdict.WORSE not in verdicts
