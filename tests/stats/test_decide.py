"""The sequential rule at every look, one look at all, and what neither may depend on."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_sample import capped_interval, hodges_lehmann
from pgstrata.model.answer import Lane, Verdict
from pgstrata.stats.boundaries import GRID, boundary, fixed_critical
from pgstrata.stats.large import capped_centre_of_many
from pgstrata.stats.rule import WALSH_CENTRES, Rule, decide_many, decide_once, estimate_many, judge

DELTA = math.log(1.03)
PLAIN = Rule(delta=DELTA)

# Multiples of 1/128 meet ties, zeros and the threshold 1/32 exactly; millionths meet none.
coarse = st.integers(-6, 6).map(lambda k: k / 128)
fine = st.integers(-60_000, 60_000).map(lambda k: k / 1e6)
samples = st.lists(coarse, max_size=24) | st.lists(fine, max_size=24)
shifted = st.tuples(st.lists(fine, min_size=7, max_size=24), fine).map(lambda pair: [x + pair[1] for x in pair[0]])


def decide(d, rule=PLAIN):
    return decide_many([np.array(d, dtype=float)], [rule])[0]


def once(d, rule=PLAIN):
    return decide_once([np.array(d, dtype=float)], [rule])[0]


def slow_decision(d, rule):
    """Look by look: interval, verdict, and every level's own interval for the repeated p."""
    repeated, verdict, n = None, Verdict.INSUFFICIENT, 0
    for n in range(1, min(len(d), rule.last) + 1):
        for alpha in GRID:
            (found,) = estimate_many([np.array(d[:n])], difference=boundary(alpha))
            if found.interval and found.interval.excludes_zero:
                repeated = min(repeated or 1, alpha)
        (found,) = estimate_many([np.array(d[:n])], difference=boundary(rule.alpha))
        verdict = judge(found, delta=rule.delta)
        if verdict not in {Verdict.INSUFFICIENT, Verdict.INCONCLUSIVE}:
            break
    return verdict, n, repeated


@given(samples | shifted, st.sampled_from([0.045, 0.02, 0.001]), st.sampled_from([DELTA, 1 / 32, 0.0]))
@settings(max_examples=60, deadline=None)
def test_the_decision_is_that_of_the_first_interval_that_decides(d, alpha, delta):
    rule = Rule(delta=delta, alpha=alpha)
    found = decide(d, rule)
    assert (found.verdict, found.n, found.repeated_p) == slow_decision(d, rule)
    assert found.alpha == alpha
    assert found.lane is Lane.SEQUENTIAL
    assert found.decided == (found.verdict not in {Verdict.INSUFFICIENT, Verdict.INCONCLUSIVE})
    if found.n:
        assert (found.estimate,) == estimate_many([np.array(d[: found.n])], difference=boundary(alpha))


@given(st.lists(samples | shifted, min_size=2, max_size=5))
@settings(max_examples=30, deadline=None)
def test_many_comparisons_at_once_decide_as_each_alone(several):
    rules = [Rule(delta=DELTA, last=24 - place) for place in range(len(several))]
    assert decide_many(several, rules) == tuple(decide(d, rule) for d, rule in zip(several, rules, strict=True))


@given(samples | shifted, st.lists(fine, max_size=4))
@settings(max_examples=60, deadline=None)
def test_blocks_after_the_decision_change_nothing(d, later):
    before = decide(d)
    if before.decided:
        assert decide([*d, *later][:24]) == before


@given(samples | shifted, st.sampled_from([24, 60]))
@settings(max_examples=80, deadline=None)
def test_swapping_the_arms_flips_the_sign_and_inverts_the_interval(d, horizon):
    rule = Rule(delta=DELTA, last=24, horizon=horizon)
    ahead, back = decide(d, rule), decide([-x for x in d], rule)
    mirrored = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
    assert back.verdict == mirrored.get(ahead.verdict, ahead.verdict)
    assert (back.n, back.lane, back.repeated_p) == (ahead.n, ahead.lane, ahead.repeated_p)
    if ahead.estimate:
        assert back.estimate.centre == -ahead.estimate.centre
        for mine, theirs in (
            (ahead.estimate.interval, back.estimate.interval),
            (ahead.estimate.equivalence, back.estimate.equivalence),
        ):
            assert (mine is None) == (theirs is None)
            assert mine is None or (theirs.low, theirs.high) == (-mine.high, -mine.low)


@given(st.lists(st.integers(500, 2000), min_size=7, max_size=24), st.sampled_from([0.125, 1.0, 1024.0]), st.randoms())
@settings(max_examples=60, deadline=None)
def test_the_unit_of_the_values_plays_no_part(values, unit, random):
    base = random.sample(values, len(values))
    plain = np.log(np.array(values, dtype=float)) - np.log(np.array(base, dtype=float))
    scaled = np.log(np.array(values) * unit) - np.log(np.array(base) * unit)
    one, other = decide(plain), decide(scaled)
    assert (one.verdict, one.n, one.repeated_p) == (other.verdict, other.n, other.repeated_p)
    assert one.estimate.centre == pytest.approx(other.estimate.centre, abs=1e-11)


@given(st.lists(coarse, min_size=1, max_size=30) | st.lists(fine, min_size=1, max_size=30), st.randoms())
@settings(max_examples=60, deadline=None)
def test_the_order_of_blocks_changes_nothing_at_one_look(d, random):
    assert once(random.sample(d, len(d))) == once(d)


@given(shifted)
@settings(max_examples=80, deadline=None)
def test_the_interval_contains_the_estimate(d):
    for found in (decide(d), once(d)):
        for span in (found.estimate.interval, found.estimate.equivalence):
            assert span is None or span.low <= found.estimate.centre <= span.high


@given(shifted)
@settings(max_examples=30, deadline=None)
def test_a_stricter_level_never_decides_a_difference_earlier(d):
    found = [decide(d, Rule(delta=0.0, alpha=alpha)) for alpha in GRID]
    assert [each.n for each in found] == sorted(each.n for each in found)


@given(shifted)
@settings(max_examples=30, deadline=None)
def test_the_repeated_p_tells_which_levels_would_have_been_crossed(d):
    # At a threshold of zero nothing but a difference stops, so that the strictest level has seen all looks.
    p = decide(d, Rule(delta=0.0, alpha=GRID[-1])).repeated_p
    for alpha in GRID:
        assert decide(d, Rule(delta=0.0, alpha=alpha)).decided == (p is not None and p <= alpha)


def test_the_comparison_ends_at_its_last_block():
    d = np.full(24, 0.2)
    assert decide(d, Rule(delta=DELTA, last=7)).verdict is Verdict.INSUFFICIENT
    assert decide(d, Rule(delta=DELTA, last=8)).verdict is Verdict.BETTER
    former = {"delta": DELTA, "horizon": 24}
    assert decide(d, Rule(**former, last=6)).verdict is Verdict.INSUFFICIENT
    assert decide(d, Rule(**former, last=7)).verdict is Verdict.BETTER
    noisy = np.tile([0.2, -0.2], 12)
    assert (decide(noisy, Rule(delta=DELTA, last=9)).verdict, decide(noisy, Rule(delta=DELTA, last=9)).n) == (
        Verdict.INCONCLUSIVE,
        9,
    )


def test_equal_arms_are_equivalent_after_eight_blocks_whatever_the_level():
    for alpha in GRID:
        found = decide(np.zeros(24), Rule(delta=DELTA, alpha=alpha))
        assert (found.verdict, found.n) == (Verdict.EQUIVALENT, 8)
        assert (found.estimate.interval is None) == (boundary(alpha).first > 8)


def test_a_small_but_sure_difference_is_negligible():
    assert decide(np.full(24, 0.01)).verdict is Verdict.NEGLIGIBLE
    assert decide(np.full(24, DELTA)).verdict is Verdict.BETTER


@pytest.mark.parametrize("decider", [decide_many, decide_once])
def test_no_blocks_are_insufficient_and_no_comparisons_no_decisions(decider):
    (found,) = decider([[]], [PLAIN])
    assert (found.verdict, found.n, found.estimate, found.decided) == (Verdict.INSUFFICIENT, 0, None, False)
    assert decider([], []) == ()


@pytest.mark.parametrize("decider", [decide_many, decide_once])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_differences_that_are_no_numbers_are_refused(decider, wrong):
    with pytest.raises(ValueError, match="finite"):
        decider([[0.1, wrong]], [PLAIN])


@pytest.mark.parametrize(
    "wrong", [{"last": 0}, {"last": 61}, {"last": 25, "horizon": 24}, {"delta": -0.1}, {"delta": math.nan}]
)
def test_a_rule_that_cannot_be_followed_is_refused(wrong):
    with pytest.raises(ValueError):
        Rule(**{"delta": DELTA, **wrong})


@pytest.mark.parametrize("n", [12, 25, 40, 199])
def test_one_look_has_the_interval_of_its_own_boundary(n):
    d = np.random.default_rng(n).normal(0.05, 0.02, n)
    found = once(d)
    low, high = capped_interval(d, fixed_critical(n, 0.045))
    assert (found.estimate.interval.low, found.estimate.interval.high) == (low, high)
    assert (found.verdict, found.lane, found.n) == (Verdict.BETTER, Lane.ONE_LOOK, n)
    assert found.repeated_p == 2 * 0.5**n
    assert 0.8 * 0.045 < found.error <= found.alpha == 0.045
    # beyond sixty blocks the median of the Walsh averages may lie outside the interval
    centre = hodges_lehmann(d) if n <= WALSH_CENTRES else capped_centre_of_many(d)
    assert found.estimate.centre == pytest.approx(centre, abs=1e-12)


def test_one_look_at_too_few_blocks_finds_neither_a_difference_nor_none():
    assert once([0.5] * 5).verdict is Verdict.INSUFFICIENT
    assert once([0.0] * 5).verdict is Verdict.INSUFFICIENT
    assert once([0.5] * 6).verdict is Verdict.BETTER
    assert once([0.5] * 6).error == 2 / 2**6


def test_one_look_is_narrower_than_the_last_of_many():
    d = np.random.default_rng(2).normal(0.01, 0.02, 24)
    (sequential,) = estimate_many([d])
    assert once(d).estimate.interval.high - once(d).estimate.interval.low < (
        sequential.interval.high - sequential.interval.low
    )


@pytest.mark.alone
def test_ten_thousand_blocks_take_seconds():
    d = np.random.default_rng(1).normal(0.001, 0.02, 10_000)
    begun = time.process_time()
    found = once(d)
    assert time.process_time() - begun < 10
    assert found.verdict is Verdict.NEGLIGIBLE
    assert found.estimate.interval.low < 0.001 < found.estimate.interval.high
    assert found.estimate.interval.high - found.estimate.interval.low == pytest.approx(4.4 * 0.02 / 100, rel=0.1)


def test_ties_everywhere_and_huge_outliers_have_an_answer():
    assert once(np.zeros(300)).verdict is Verdict.EQUIVALENT
    assert once(np.full(300, 0.2)).verdict is Verdict.BETTER
    d = np.full(300, 0.2)
    d[:60] = -500.0
    assert once(d).verdict is Verdict.BETTER
    assert decide([0.2] * 9 + [-500.0] * 2).verdict is Verdict.BETTER
    assert decide([-500.0] * 2 + [0.2] * 22).verdict is Verdict.BETTER


@pytest.mark.alone
def test_ten_thousand_comparisons_take_seconds():
    d = np.random.default_rng(4).normal(0.0, 0.03, (10_000, 60))
    begun = time.process_time()
    found = decide_many(list(d), [PLAIN] * len(d))
    assert time.process_time() - begun < 20
    different = sum(each.verdict in {Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE} for each in found)
    assert different / len(d) <= 0.05


@pytest.mark.parametrize("n", [25, 60])
def test_one_look_beyond_the_tables_is_wrong_as_often_as_its_level_says(n):
    d = np.random.default_rng(n).standard_t(3, (2000, n)) * 0.02
    wrong = sum(found.estimate.interval.excludes_zero for found in decide_once(list(d), [PLAIN] * len(d)))
    assert 0.025 <= wrong / len(d) <= 0.06
