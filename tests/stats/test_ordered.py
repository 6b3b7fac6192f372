"""Steps along ordered levels, against slow definitions and known truths."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pgstrata.stats.ordered import find_steps, find_steps_unpaired, page_trend

matrices = arrays(
    np.float64,
    st.tuples(st.integers(1, 5), st.integers(2, 6)),
    elements=st.one_of(st.just(math.nan), st.integers(-50, 50).map(lambda k: k / 64)),
)


def staircase(blocks, levels, steps, sd=0.01, seed=0):
    """Blocks of their own height; `steps` by the place of the first level after each."""
    rng = np.random.default_rng(seed)
    logs = rng.normal(0, sd, (blocks, levels)) + rng.normal(0, 0.3, (blocks, 1))
    for place, size in steps.items():
        logs[:, place:] += size
    return logs


def test_a_step_is_found_at_its_place_with_its_size():
    found = find_steps(staircase(8, 6, {4: -0.05}, seed=1))
    (step,) = found.steps
    assert (step.before, step.after, step.blocks) == (3, 4, 8)
    assert step.effect == pytest.approx(-0.05, abs=0.01)
    assert step.interval.low <= -0.05 <= step.interval.high < 0
    assert step.p == found.p <= 0.01
    assert found.paired
    assert found.levels == 6


def test_several_steps_are_found_in_their_order():
    found = find_steps(staircase(10, 9, {3: 0.05, 6: -0.08}, seed=1))
    assert [(step.before, step.after) for step in found.steps] == [(2, 3), (5, 6)]
    assert [step.effect for step in found.steps] == pytest.approx([0.05, -0.08], abs=0.01)


def dip(blocks, levels, place, size, seed=0):
    """One level apart from all others."""
    return staircase(blocks, levels, {place: size, place + 1: -size}, seed=seed)


@pytest.mark.parametrize(("blocks", "levels"), [(5, 5), (8, 8), (12, 7)])
def test_a_level_that_dips_and_recovers_is_two_edges(blocks, levels):
    place = levels // 2
    found = find_steps(dip(blocks, levels, place, -0.4))
    assert [(step.before, step.after) for step in found.steps] == [(place - 1, place), (place, place + 1)]
    assert [step.effect for step in found.steps] == pytest.approx([-0.4, 0.4], abs=0.02)


def test_a_dip_that_recovers_higher_is_two_edges_though_so_few_blocks_show_only_one():
    levels = np.log([25_000, 25_420, 7_741, 37_547, 37_600])
    found = find_steps(np.tile(levels, (3, 1)) + staircase(3, 5, {}, seed=2))
    assert [step.after for step in found.steps] == [2, 3]
    assert [math.exp(step.effect) - 1 for step in found.steps] == pytest.approx([-0.695, 3.85], abs=0.1)


def test_a_dip_is_found_without_blocks():
    rows = dip(6, 7, 3, -0.4)
    groups = list((rows - rows.mean(axis=1, keepdims=True)).T)
    assert [step.after for step in find_steps_unpaired(groups).steps] == [3, 4]


def test_a_dip_of_several_levels_is_found():
    found = find_steps(staircase(6, 9, {3: -0.2, 6: 0.2}, seed=3))
    assert [step.after for step in found.steps] == [3, 6]


def test_along_many_levels_a_short_dip_is_found_too():
    assert [step.after for step in find_steps(dip(8, 40, 20, -0.3), draws=999).steps] == [20, 21]


def test_below_seven_blocks_a_step_has_no_interval():
    (step,) = find_steps(staircase(5, 6, {2: 0.1})).steps
    assert step.interval is None
    assert step.blocks == 5


def test_level_axes_show_steps_in_at_most_five_percent():
    wrong = [bool(find_steps(staircase(5, 6, {}, seed=seed), draws=999).steps) for seed in range(600)]
    assert np.mean(wrong) <= 0.07


def test_a_true_step_brings_no_false_ones_along():
    counts = [len(find_steps(staircase(8, 8, {4: 0.1}, seed=seed), draws=999).steps) for seed in range(300)]
    assert min(counts) == 1
    assert np.mean(np.array(counts) > 1) <= 0.07


@pytest.mark.parametrize(("blocks", "better", "p"), [(3, 3, 2 / 8), (7, 7, 2 / 128), (9, 8, 20 / 512)])
def test_of_two_levels_the_p_value_is_that_of_the_signs(blocks, better, p):
    signs = np.where(np.arange(blocks) < better, 0.1, -0.1)
    logs = np.stack([np.zeros(blocks), signs], axis=1)
    assert find_steps(logs, draws=20_000).p == pytest.approx(p, abs=4 * math.sqrt(p / 20_000))


def test_repeats_too_few_for_any_step_say_so():
    found = find_steps(staircase(5, 2, {1: 0.5}))
    assert found.steps == ()
    assert found.smallest_p == pytest.approx(2 / 32, abs=0.02)
    assert find_steps(staircase(7, 2, {1: 0.5})).steps


def test_the_same_seed_gives_the_same_answer():
    logs = staircase(5, 6, {3: 0.02})
    assert find_steps(logs, seed=5) == find_steps(logs, seed=5)
    assert find_steps(logs, seed=5).seed == 5


def test_missing_values_are_passed_over():
    logs = staircase(8, 6, {4: 0.05}, seed=2)
    logs[0, 1] = logs[3, 5] = math.nan
    logs[5] = math.nan
    (step,) = find_steps(logs).steps
    assert (step.before, step.blocks) == (3, 7)
    assert step.effect == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize("value", [0.0, 0.1, math.nan, math.inf])
def test_constant_values_have_no_step(value):
    found = find_steps(np.full((6, 5), value), draws=99)
    assert found.steps == ()
    assert found.p == found.smallest_p == 1


def test_equal_values_share_their_rank():
    logs = np.tile([0.0, 0.0, 0.0, 0.1, 0.1, 0.1], (6, 1))
    (step,) = find_steps(logs).steps
    assert (step.before, step.effect) == (2, pytest.approx(0.1))


@pytest.mark.parametrize("logs", [np.ones(5), np.ones((3, 1)), np.ones((0, 4))])
def test_no_axis_is_an_error(logs):
    with pytest.raises(ValueError, match="two levels"):
        find_steps(logs)


@given(matrices)
@settings(max_examples=40, deadline=None)
def test_whatever_is_given_the_steps_ascend(logs):
    found = find_steps(logs, draws=199)
    places = [step.after for step in found.steps]
    assert places == sorted(set(places))
    assert 0 < found.smallest_p <= found.p <= 1


@pytest.mark.parametrize("seed", range(5))
def test_mirrored_values_mirror_the_steps(seed):
    logs = staircase(7, 6, {2: 0.03, 4: 0.05}, seed=seed)
    ours, mirrored = find_steps(logs), find_steps(-logs)
    assert [(step.after, step.effect) for step in ours.steps] == [
        (step.after, pytest.approx(-step.effect)) for step in mirrored.steps
    ]


@given(matrices, st.integers(-3, 3))
@settings(max_examples=30, deadline=None)
def test_the_height_of_a_block_changes_nothing(logs, height):
    moved = logs.copy()
    moved[0] += height
    assert find_steps(moved, draws=99).p == find_steps(logs, draws=99).p


def test_a_history_without_blocks_shows_its_step_and_says_that_it_has_none():
    rng = np.random.default_rng(3)
    levels = [rng.normal(0.05 if k >= 3 else 0.0, 0.01, 5) for k in range(6)]
    found = find_steps_unpaired(levels)
    (step,) = found.steps
    assert (step.before, step.after, step.blocks) == (2, 3, 0)
    assert step.effect == pytest.approx(0.05, abs=0.01)
    assert step.interval.low < step.effect < step.interval.high
    assert not found.paired
    assert found.trend is None


def test_a_long_history_of_single_values_shows_its_steps():
    rng = np.random.default_rng(4)
    values = rng.normal(0, 0.01, 60)
    values[20:45] += 0.04
    found = find_steps_unpaired([[value] for value in values])
    assert [step.after for step in found.steps] == pytest.approx([20, 45], abs=1)


def test_levels_of_different_sizes_and_gaps_are_taken_as_they_are():
    rng = np.random.default_rng(5)
    levels = [rng.normal(0.1 * (k >= 2), 0.01, size) for k, size in enumerate((3, 9, 4, 6))]
    levels[1][2] = math.nan
    (step,) = find_steps_unpaired(levels).steps
    assert step.after == 2


@pytest.mark.parametrize("levels", [[], [[1.0, 2.0]], [[1.0], [math.nan]]])
def test_a_history_needs_two_levels_with_values(levels):
    with pytest.raises(ValueError, match="two levels"):
        find_steps_unpaired(levels)


def test_histories_without_a_step_show_one_in_at_most_five_percent():
    rng = np.random.default_rng(6)
    wrong = [bool(find_steps_unpaired(list(rng.normal(0, 1, (6, 5))), draws=499).steps) for _ in range(400)]
    assert np.mean(wrong) <= 0.075


def slow_page(rows):
    """Exact two-sided p over all orders of all blocks."""
    ranks = np.argsort(np.argsort(rows, axis=1), axis=1) + 1.0
    blocks, levels = ranks.shape
    places = np.arange(1, levels + 1)
    observed = float((ranks @ places).sum())
    orders = [float(np.array(order) @ places) for order in permutations(range(1, levels + 1))]
    sums = np.array([sum(pick) for pick in product(orders, repeat=blocks)])
    tail = min((sums >= observed).mean(), (sums <= observed).mean())
    return observed, min(1.0, 2 * tail)


@pytest.mark.parametrize("seed", range(5))
def test_the_trend_is_that_of_all_orders(seed):
    logs = np.random.default_rng(seed).normal(0, 1, (3, 4))
    trend = page_trend(logs)
    assert trend.exact
    assert (trend.statistic, trend.p) == pytest.approx(slow_page(logs))


def test_pages_own_critical_value_is_met():
    # Page 1963, table 2: 4 levels, 5 blocks: L = 137 at .05 (one-sided), 141 at .01
    rows = np.array([[1, 2, 3, 4]] * 3 + [[2, 1, 4, 3], [1, 3, 2, 4]], dtype=float)
    trend = page_trend(rows)
    assert trend.statistic == 3 * 30 + 28 + 29
    assert trend.p / 2 <= 0.01


def test_the_normal_trend_is_close_to_the_exact_one():
    logs = np.tile([0.1, 0.2, 0.05, 0.3, 0.28, 0.4], (8, 1)) + np.random.default_rng(7).normal(0, 0.3, (8, 6))
    exact = page_trend(logs)
    tied = logs.copy()
    lowest, next_one, *_ = np.argsort(logs[0])
    tied[0, lowest] = tied[0, next_one]
    close = page_trend(tied)
    assert exact.exact
    assert not close.exact
    assert math.log(close.p) == pytest.approx(math.log(exact.p), abs=0.5)


def test_a_falling_trend_is_told_from_a_rising_one():
    logs = staircase(6, 5, {1: 0.02, 2: 0.02, 3: 0.02, 4: 0.02}, sd=0.005)
    up, down = page_trend(logs), page_trend(-logs)
    assert up.rising
    assert not down.rising
    assert up.p == pytest.approx(down.p)
    assert up.p < 0.001


def test_blocks_with_gaps_have_no_part_in_the_trend():
    logs = staircase(6, 5, {2: 0.1})
    logs[1, 3] = math.nan
    assert page_trend(logs).blocks == 5
    logs[:, 0] = math.nan
    assert page_trend(logs) is None


def test_constant_levels_have_no_trend():
    assert page_trend(np.ones((5, 4))).p == 1
