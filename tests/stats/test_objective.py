import math
from statistics import NormalDist, fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.stats.objective import Found, Step, find_crossing, level_interval, next_rate


def step(rate, score, weight=1000.0):
    return Step(rate=rate, score=score, weight=weight, least=0.05)


def test_the_crossing_lies_between_the_rates_around_the_limit():
    found = find_crossing([step(500, 0.1), step(600, 0.5), step(700, 2.0), step(800, 40.0)])
    assert (found.found, found.low, found.high) == (Found.WITHIN, 600, 700)
    assert found.rate == pytest.approx(math.sqrt(600 * 700), rel=0.03), "half-way in the logarithms of 0.5 and 2"


def test_steps_at_one_rate_count_together_and_leave_lower_rates_alone():
    found = find_crossing([step(500, 0.0), step(600, 0.0), step(600, 5.0), step(600, 9.0), step(700, 20.0)])
    assert (found.found, found.low, found.high) == (Found.WITHIN, 500, 600)


def test_a_step_that_was_disturbed_is_outvoted_by_later_ones_at_higher_rates():
    disturbed = [step(500, 0.1), step(600, 3.0)]
    assert find_crossing(disturbed).high == 600
    later = [*disturbed, step(610, 0.1), step(620, 0.2), step(630, 0.2), step(700, 5.0)]
    found = find_crossing(later)
    assert (found.low, found.high) == (630, 700)
    assert found.rate > 610


def test_limits_that_no_rate_or_every_rate_keeps_are_told():
    missed = find_crossing([step(500, 3.0), step(300, 2.0)])
    assert (missed.found, missed.rate) == (Found.MISSED, 300)
    kept = find_crossing([step(500, 0.0), step(800, 0.4)])
    assert (kept.found, kept.rate) == (Found.KEPT, 800)


STEPS = st.lists(st.builds(step, st.floats(10, 1e5), st.floats(0, 100), st.floats(1, 1e6)), min_size=1, max_size=15)


@given(STEPS)
def test_a_crossing_is_within_the_rates_that_were_tried(steps):
    found = find_crossing(steps)
    rates = [each.rate for each in steps]
    assert min(rates) <= found.low <= found.high <= max(rates)
    assert min(rates) <= found.rate <= max(rates)


@given(STEPS, st.randoms(use_true_random=False))
def test_the_order_of_the_steps_does_not_matter(steps, random):
    shuffled = list(steps)
    random.shuffle(shuffled)
    first, second = find_crossing(steps), find_crossing(shuffled)
    assert first.found is second.found
    assert first.rate == pytest.approx(second.rate, rel=1e-3)


def sharp(capacity):
    """A server without noise: the score is tenfold at 5 % above its capacity."""
    return lambda rate: min(100.0, (rate / capacity) ** (math.log(10) / math.log(1.05)))


@pytest.mark.parametrize("share", [0.05, 0.2, 0.6, 0.9, 1.05])
def test_the_search_finds_the_rate_of_a_server_without_noise_in_eleven_steps(share):
    maximum, score = 1000.0, sharp(1000.0 * share)
    steps = []
    while len(steps) < 11:
        rate = next_rate(steps, maximum)
        steps.append(step(rate, score(rate)))
    assert find_crossing(steps).rate == pytest.approx(1000 * share, rel=0.02)


def test_a_rate_that_kept_the_limit_and_was_outvoted_keeps_the_search_near():
    steps = [step(3922, 0.0), step(4529, 9.6), step(4215, 8.4), step(4146, 0.25), step(3845, 32.8)]
    assert find_crossing(steps).found is Found.MISSED
    assert next_rate(steps, 5230.0) == pytest.approx(0.8 * 3845)


def test_the_search_ends_where_the_limit_is_missed_at_any_rate():
    steps, rate = [], next_rate([], 1000.0)
    while rate is not None:
        steps.append(step(rate, 100.0))
        rate = next_rate(steps, 1000.0)
    assert len(steps) < 11
    assert find_crossing(steps).found is Found.MISSED


def test_a_level_needs_three_runs():
    assert level_interval([100.0, 110.0]) is None
    found = level_interval([100.0, 100.0, 100.0])
    assert (found.low, found.value, found.high) == pytest.approx((100.0, 100.0, 100.0))


def test_a_level_is_that_at_which_all_runs_together_keep_the_limit():
    """Late shares grow with the 20th power of the rate: at the level their mean over the runs is the one that may be."""
    runs = [1000 * math.exp(0.03 * NormalDist().inv_cdf((place + 0.5) / 400)) for place in range(400)]
    found = level_interval(runs)
    assert fmean((found.value / rate) ** 20 for rate in runs) == pytest.approx(1.0, abs=0.02)
    assert found.value < median(runs)
    assert found.low < found.value < found.high


def test_the_interval_reaches_farther_down_because_rare_stalls_may_have_been_missed():
    found = level_interval([690.0, 700.0, 710.0, 720.0, 730.0])
    assert math.log(found.value / found.low) > 1.2 * math.log(found.high / found.value)


def test_a_run_that_strays_far_does_not_bend_the_level_beyond_where_the_law_holds():
    found = level_interval([3448.0, 3719.0, 3232.0, 1750.0])
    assert 2400 < found.value < 2900
    assert 1000 < found.low < found.high < 6000
