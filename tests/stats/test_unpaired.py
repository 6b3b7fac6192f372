"""Two arms without blocks."""

import math
from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.model.answer import Lane, Verdict
from pgstrata.stats.rule import Rule
from pgstrata.stats.unpaired import EXACT_PAIRS, decide_unpaired, unpaired_critical

RULE = Rule(delta=math.log(1.03))
arms = st.lists(st.integers(900, 1100) | st.integers(995, 1005), min_size=1, max_size=12)


def decide(values, base_values, *, higher_is_better=True):
    return decide_unpaired(values, base_values, rule=RULE, higher_is_better=higher_is_better)


def slow_tail(n, m, critical):
    """P(min(U, nm - U) <= critical) over all orders."""
    hits = 0
    for mine in combinations(range(n + m), n):
        beaten = sum(place - rank for rank, place in enumerate(mine))
        hits += min(beaten, n * m - beaten) <= critical
    return hits / math.comb(n + m, n)


def slow_interval(values, base_values, critical):
    shifts = sorted(math.log(a) - math.log(b) for a in values for b in base_values)
    return shifts[critical], shifts[-1 - critical]


@pytest.mark.parametrize(("n", "m"), [(3, 3), (3, 4), (4, 4), (3, 5), (6, 5), (3, 12)])
@pytest.mark.parametrize("alpha", [0.1, 0.045, 0.01, 0.0005])
def test_the_critical_count_is_the_largest_that_all_orders_allow(n, m, alpha):
    critical = unpaired_critical(n, m, alpha)
    found = -1 if critical is None else critical
    assert critical is None or slow_tail(n, m, found) <= alpha
    assert slow_tail(n, m, found + 1) > alpha


def test_critical_counts_are_those_of_published_tables():
    # Two-sided 5 %: the tables of Mann and Whitney's test.
    assert [unpaired_critical(n, n, 0.05) for n in (4, 5, 8, 10, 20)] == [0, 2, 13, 23, 127]


@pytest.mark.parametrize("alpha", [0.1, 0.045, 0.001])
def test_the_normal_approximation_is_within_a_pair_of_the_counts(alpha):
    for n, m in ((49, 51), (50, 50), (25, 100)):
        exact = unpaired_critical(n, m, alpha)
        spread = math.sqrt(n * m * (n + m + 1) / 12)
        normal = math.floor(n * m / 2 + NormalDist().inv_cdf(alpha / 2) * spread - 0.5)
        assert abs(exact - normal) <= 2 + 0.01 * exact
    assert EXACT_PAIRS < 51 * 50
    assert unpaired_critical(51, 50, alpha) == pytest.approx(unpaired_critical(50, 50, alpha) * 51 / 50, rel=0.03)


def test_the_approximation_is_cautious_where_one_arm_is_tiny():
    critical = unpaired_critical(3, 5000, 0.045)
    beaten = np.random.default_rng(3).random((50_000, 3)).sum(axis=1) * 5000
    assert (np.minimum(beaten, 3 * 5000 - beaten) <= critical).mean() <= 0.045


@pytest.mark.parametrize(("n", "m"), [(3, 3), (3, 4), (2, 50), (1, 300)])
def test_few_values_support_no_interval_and_no_verdict(n, m):
    found = decide([2000.0] * n, [1000.0] * m)
    assert (found.verdict, found.decided, found.lane) == (Verdict.INSUFFICIENT, False, Lane.ONE_LOOK)
    assert found.n == min(n, m)
    assert found.estimate.interval is None
    assert found.estimate.equivalence is None
    assert found.estimate.centre == pytest.approx(math.log(2))


def test_four_against_four_and_three_against_five_are_the_least_that_decides():
    for n, m, p in ((4, 4, 2 / 70), (3, 5, 2 / 56)):
        found = decide(np.linspace(1100, 1120, n), np.linspace(1000, 1010, m))
        assert found.verdict is Verdict.BETTER
        assert (found.repeated_p, found.error) == pytest.approx((p, p))
        assert (found.estimate.interval.low, found.estimate.interval.high) == pytest.approx(
            (math.log(1100 / 1010), math.log(1120 / 1000))
        )


def test_lower_values_are_better_where_the_metric_says_so():
    low, high = [1.0, 1.01, 1.02, 1.03, 1.04], [1.2, 1.21, 1.22, 1.23, 1.24]
    assert decide(low, high, higher_is_better=False).verdict is Verdict.BETTER
    assert decide(low, high, higher_is_better=True).verdict is Verdict.WORSE
    assert decide(low, high, higher_is_better=False).estimate.centre > 0


def test_equal_arms_with_enough_values_are_equivalent():
    values = np.linspace(999, 1001, 8)
    assert decide(values, values).verdict is Verdict.EQUIVALENT


def test_an_empty_arm_is_insufficient():
    found = decide([], [1.0, 2.0])
    assert (found.verdict, found.estimate, found.n) == (Verdict.INSUFFICIENT, None, 0)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_values_without_a_logarithm_are_refused(wrong):
    with pytest.raises(ValueError, match="above zero"):
        decide([1.0, wrong], [1.0])


@given(arms, arms)
@settings(max_examples=80, deadline=None)
def test_interval_and_estimate_are_those_of_all_differences(values, base_values):
    found = decide(values, base_values)
    shifts = np.log(np.array(values, dtype=float))[:, None] - np.log(np.array(base_values, dtype=float))
    assert found.estimate.centre == pytest.approx(np.median(shifts), abs=1e-12)
    critical = unpaired_critical(len(values), len(base_values), 0.045)
    if critical is None:
        assert found.estimate.interval is None
    else:
        ends = found.estimate.interval.low, found.estimate.interval.high
        assert ends == pytest.approx(slow_interval(values, base_values, critical), abs=1e-12)
        assert ends[0] <= found.estimate.centre <= ends[1]


@given(arms, arms, st.sampled_from([0.001, 7.3, 1e6]), st.randoms())
@settings(max_examples=60, deadline=None)
def test_unit_order_and_direction_play_no_part(values, base_values, unit, random):
    plain = decide(values, base_values)
    scaled = decide([unit * v for v in random.sample(values, len(values))], [unit * v for v in base_values])
    swapped = decide(base_values, values)
    mirrored = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
    assert scaled.verdict is plain.verdict
    assert swapped.verdict is mirrored.get(plain.verdict, plain.verdict)
    assert swapped.estimate.centre == pytest.approx(-plain.estimate.centre, abs=1e-12)
    assert scaled.repeated_p == swapped.repeated_p == plain.repeated_p


@pytest.mark.parametrize("digits", [0, 6])
def test_equal_arms_are_called_different_in_at_most_the_level(digits):
    rng = np.random.default_rng(12)
    wrong = 0
    for _ in range(2000):
        values = np.round(1000 * np.exp(rng.normal(0, 0.002, (2, 8))), digits)
        wrong += decide(*values).verdict in {Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE}
    assert wrong / 2000 <= 0.055


def test_ten_thousand_values_on_each_side_take_seconds():
    rng = np.random.default_rng(1)
    values = 1000 * np.exp(rng.normal(0, 0.02, (2, 10_000)))
    values[0] *= 1.002
    found = decide(*values)
    assert found.verdict is Verdict.NEGLIGIBLE
    assert found.estimate.interval.low < math.log(1.002) < found.estimate.interval.high
