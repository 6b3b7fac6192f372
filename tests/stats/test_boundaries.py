"""The frozen boundaries against exact counts."""

from itertools import product

import numpy as np
import pytest

from pgstrata.stats.boundaries import C_01, C_DIFF, C_EQ, MAX_BLOCKS, exact_tail
from pgstrata.stats.ranks import capped_scores

ALL = pytest.mark.parametrize("boundary", [C_DIFF, C_EQ, C_01])


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


@ALL
def test_each_boundary_reaches_to_the_last_block_and_never_falls(boundary):
    assert boundary.first + len(boundary.values) - 1 == MAX_BLOCKS
    assert list(boundary.values) == sorted(boundary.values)


@ALL
def test_before_its_first_look_a_boundary_has_no_value(boundary):
    assert boundary.critical(boundary.first - 1) is None
    assert boundary.critical(boundary.first) == boundary.values[0]
    assert boundary.critical(MAX_BLOCKS) == boundary.values[-1]


@ALL
def test_more_blocks_than_the_boundary_was_made_for_are_refused(boundary):
    with pytest.raises(ValueError, match="end at 24"):
        boundary.critical(MAX_BLOCKS + 1)


@ALL
def test_the_whole_level_is_spent_at_the_last_block(boundary):
    assert boundary.spent(MAX_BLOCKS) == pytest.approx(boundary.alpha)


@pytest.mark.parametrize(("n", "critical"), [(n, c) for n in (1, 2, 5, 8) for c in (0, 1, 3)])
def test_the_exact_tail_counts_all_sign_patterns(n, critical):
    hits = sum(smaller_sum(signs, range(1, n + 1)) <= critical for signs in product((True, False), repeat=n))
    assert exact_tail(n, critical) == hits / 2**n


@ALL
def test_the_first_look_takes_the_largest_value_that_the_spending_allows(boundary):
    n, critical = boundary.first, boundary.values[0]
    assert exact_tail(n, critical) <= boundary.spent(n) < exact_tail(n, critical + 1)


@ALL
def test_the_first_look_could_not_have_come_earlier(boundary):
    assert exact_tail(boundary.first - 1, 0) > boundary.spent(boundary.first - 1)


@ALL
def test_no_single_look_spends_more_than_is_allowed_by_then(boundary):
    for n, critical in enumerate(boundary.values, start=boundary.first):
        assert exact_tail(n, critical) <= boundary.spent(n)


@pytest.mark.parametrize("boundary", [C_DIFF, C_EQ])
def test_the_first_two_looks_together_spend_at_most_what_is_allowed(boundary):
    first, second = boundary.values[:2]
    assert spent_at_seven_and_eight(first, second) <= boundary.spent(8) < spent_at_seven_and_eight(first, second + 1)
