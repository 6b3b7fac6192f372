"""The frozen boundaries against exact counts and against drawn comparisons."""

from functools import cache
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.model.plan import FORMER_HORIZON, HORIZON
from pgstrata.stats.boundaries import (
    ALPHA,
    ALPHA_EQ,
    EXACT_BLOCKS,
    GRID,
    boundaries_of,
    boundary,
    exact_tail,
    fewest_blocks,
    fixed_critical,
    fixed_level,
    fixed_p,
)
from pgstrata.stats.ranks import capped_scores
from pgstrata.stats.sequence import critical_row, look_at_all

FORMER, LATER = boundaries_of(FORMER_HORIZON), boundaries_of(HORIZON)
FROZEN = {
    FORMER.at(ALPHA): "0 0 1 2 4 5 8 9 13 15 19 22 26 30 35 39 45 49",
    FORMER.at(ALPHA_EQ): "1 2 3 4 6 8 10 13 16 19 24 27 32 36 42 46 53 58",
    FORMER.at(0.01): "0 0 1 2 4 6 7 9 12 15 18 21 25 28 33 37",
}
LEVELS = [*FORMER.levels, *LATER.levels]
ALL = pytest.mark.parametrize("boundary", LEVELS, ids=lambda level: f"{level.last} {level.alpha}")


def smaller_sum(signs, ranks):
    scores = capped_scores(len(signs))[np.array(ranks) - 1]
    plus = float(scores[np.array(signs)].sum())
    return min(plus, float(scores.sum()) - plus)


def spent_at_seven_and_eight(first, second):
    """P(crossed at 7 or at 8 blocks): all signs, and all places of the eighth |D| among the others."""
    crossed = 0
    for eighth in range(1, 9):
        ranks = [*(rank for rank in range(1, 9) if rank != eighth), eighth]
        for signs in product((True, False), repeat=8):
            crossed += smaller_sum(signs[:7], range(1, 8)) <= first or smaller_sum(signs, ranks) <= second
    return crossed / (8 * 2**8)


def spending(values):
    """P(crossed by n) for n = 1, 2, ... under critical values for these n, from the probabilities of sign patterns.

    In the order of sizes n signs form one of 2^n patterns; the next block inserts a sign at any of n + 1 places.
    """
    patterns = np.ones(1)
    spent = [0.0]
    for n, critical in enumerate(values, start=1):
        codes = np.arange(2**n)
        cuts = [(codes >> (place + 1) << place) | (codes & ((1 << place) - 1)) for place in range(n)]
        patterns = sum(patterns[cut] for cut in cuts) / (2 * n)
        plus = ((codes[:, np.newaxis] >> np.arange(n)) & 1) @ capped_scores(n)
        crossed = np.minimum(plus, capped_scores(n).sum() - plus) <= critical
        spent.append(spent[-1] + patterns[crossed].sum())
        patterns[crossed] = 0.0
    return spent[1:]


@cache
def spent_by_sixteen(level):
    return spending(critical_row(level)[:16].tolist())


def test_probabilities_of_patterns_are_those_of_all_orders_and_signs():
    values = [-1, -1, 0, 1, 2]
    crossed = 0
    for order in permutations(range(5)):
        ranks = [[sum(other <= one for other in order[:n]) for one in order[:n]] for n in range(1, 6)]
        for signs in product((True, False), repeat=5):
            crossed += any(smaller_sum(signs[:n], ranks[n - 1]) <= values[n - 1] for n in range(1, 6))
    assert spending(values)[-1] == pytest.approx(crossed / (120 * 32))


@pytest.mark.parametrize("frozen", FROZEN)
def test_the_levels_of_the_rule_have_the_values_of_the_specification(frozen):
    assert " ".join(str(value) for value in frozen.values) == FROZEN[frozen]


@pytest.mark.parametrize(
    ("alpha", "first"), [(0.045, 7), (0.02, 8), (0.01, 9), (0.005, 10), (0.0025, 11), (0.001, 12), (0.0005, 13)]
)
def test_over_sixty_blocks_each_level_has_its_first_look_one_block_later(alpha, first):
    assert FORMER.at(alpha).first == first
    assert LATER.at(alpha).first == first + 1


def test_equality_is_not_looked_for_before_a_difference_could_be_shown():
    for horizon in (FORMER, LATER):
        assert horizon.equivalence.first == horizon.at(ALPHA).first


def test_there_are_boundaries_over_two_horizons_only():
    with pytest.raises(ValueError, match="over 24, 60 blocks, not over 30"):
        boundaries_of(30)


@ALL
def test_each_boundary_reaches_to_the_last_block_and_never_falls(boundary):
    assert boundary.first + len(boundary.values) - 1 == boundary.last
    assert list(boundary.values) == sorted(boundary.values)


def test_a_smaller_level_never_has_a_larger_value():
    for levels in (FORMER.levels, LATER.levels):
        for wide, narrow in pairwise(levels):
            assert wide.alpha > narrow.alpha
            assert (critical_row(wide) >= critical_row(narrow)).all()


def test_a_longer_horizon_never_has_a_larger_value():
    for former, later in zip(FORMER.levels, LATER.levels, strict=True):
        assert (critical_row(later)[:FORMER_HORIZON] <= critical_row(former)[:FORMER_HORIZON]).all()


@ALL
def test_before_its_first_look_a_boundary_has_no_value(boundary):
    assert boundary.critical(boundary.first - 1) is None
    assert boundary.critical(boundary.first) == boundary.values[0]
    assert boundary.critical(boundary.last) == boundary.values[-1]


@ALL
def test_more_blocks_than_the_boundary_was_made_for_are_refused(boundary):
    with pytest.raises(ValueError, match=f"end at {boundary.last}"):
        boundary.critical(boundary.last + 1)


@ALL
def test_the_whole_level_is_spent_at_the_last_block(boundary):
    assert boundary.spent(boundary.last) == pytest.approx(boundary.alpha)


@pytest.mark.parametrize(
    ("alpha", "level"),
    [(0.045, 0.045), (0.05, 0.045), (0.0449, 0.02), (0.045 / 9, 0.005), (0.5, 0.1), (0.0005, 0.0005)],
)
def test_a_level_is_rounded_down_to_the_grid(alpha, level):
    assert boundary(alpha).alpha == level


def test_a_level_below_the_grid_has_no_boundary():
    with pytest.raises(ValueError, match=r"smallest is 0\.0005"):
        boundary(0.00049)


@pytest.mark.parametrize(("n", "critical"), [(n, c) for n in (1, 2, 5, 8) for c in (-1, 0, 1, 3)])
def test_the_exact_tail_counts_all_sign_patterns(n, critical):
    hits = sum(smaller_sum(signs, range(1, n + 1)) <= critical for signs in product((True, False), repeat=n))
    assert exact_tail(n, critical) == hits / 2**n


@ALL
def test_the_first_look_takes_the_largest_value_that_the_spending_allows(boundary):
    n, critical = boundary.first, boundary.values[0]
    assert exact_tail(n, critical) <= boundary.spent(n) < exact_tail(n, critical + 1)


@pytest.mark.parametrize("boundary", [*FORMER.levels, *LATER.levels[1:]])
def test_the_first_look_could_not_have_come_earlier(boundary):
    assert exact_tail(boundary.first - 1, 0) > boundary.spent(boundary.first - 1)


@ALL
def test_no_single_look_spends_more_than_is_allowed_by_then(boundary):
    for n, critical in enumerate(boundary.values, start=boundary.first):
        assert exact_tail(n, critical) <= boundary.spent(n)


@pytest.mark.parametrize("boundary", [FORMER.at(ALPHA), FORMER.at(ALPHA_EQ)])
def test_the_first_two_looks_together_spend_at_most_what_is_allowed(boundary):
    first, second = boundary.values[:2]
    assert spent_at_seven_and_eight(first, second) <= boundary.spent(8) < spent_at_seven_and_eight(first, second + 1)


@ALL
def test_all_looks_together_spend_at_most_what_is_allowed(boundary):
    for n, spent in enumerate(spent_by_sixteen(boundary), start=1):
        assert spent <= boundary.spent(n)


@pytest.mark.parametrize("level", LEVELS)
def test_no_value_of_the_generator_could_be_larger(level):
    values = critical_row(level)[:14].tolist()
    for n in range(level.first, 15):
        larger = [*values[: n - 1], values[n - 1] + 1]
        assert spending(larger)[-1] > level.spent(n)


def test_drawn_equal_arms_cross_a_boundary_as_often_as_its_level_says():
    d = np.random.default_rng(3).standard_t(4, (20_000, HORIZON))
    zero = look_at_all(list(d), np.zeros(len(d))).zero
    for level in LEVELS:
        crossed = (zero <= critical_row(level)).any(axis=-1).mean()
        # the values are whole numbers, so that a small level is not quite spent
        assert abs(crossed - level.alpha) <= 4 * np.sqrt(level.alpha / len(d)) + 0.06 * level.alpha


@pytest.mark.parametrize("n", [25, 60, EXACT_BLOCKS])
def test_the_fixed_boundary_takes_the_largest_value_that_the_level_allows(n):
    for alpha in GRID:
        critical = fixed_critical(n, alpha)
        assert exact_tail(n, critical) <= alpha < exact_tail(n, critical + 1)


@pytest.mark.parametrize("n", [EXACT_BLOCKS + 1, EXACT_BLOCKS + 100])
def test_the_normal_approximation_is_close_to_the_counts_and_on_the_safe_side(n):
    for alpha in GRID:
        assert 0.96 * alpha <= exact_tail(n, fixed_critical(n, alpha)) <= alpha


@pytest.mark.parametrize("alpha", [0.1, 0.05, 0.045, 0.045 / 172, 1e-6])
def test_so_few_blocks_have_a_fixed_value_and_none_fewer(alpha):
    n = fewest_blocks(alpha)
    assert fixed_critical(n, alpha) is not None
    assert fixed_critical(n - 1, alpha) is None


@given(st.integers(6, 60), st.floats(0.035, 0.2))
def test_the_p_value_of_one_look_is_the_level_at_which_it_excludes(n, alpha):
    critical = fixed_critical(n, alpha)
    assert fixed_p(n, critical) == fixed_level(n, alpha) <= alpha < fixed_p(n, critical + 1)
    assert fixed_p(n, critical + 0.5) == fixed_p(n, critical + 1)


def test_beyond_the_counts_the_p_value_is_close_to_them():
    n = EXACT_BLOCKS + 1
    for alpha in GRID:
        critical = fixed_critical(n, alpha)
        assert fixed_p(n, critical) <= alpha < fixed_p(n, critical + 1)
        assert fixed_p(n, critical) == pytest.approx(exact_tail(n, critical), rel=0.05)


def test_a_fixed_sample_too_small_for_its_level_has_no_value():
    assert fixed_critical(4, 0.045) is None
    assert fixed_critical(6, 0.045) == 0
