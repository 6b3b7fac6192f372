"""Headlines that share a level, and adjusted p values."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.model.answer import Lane, Verdict
from pgstrata.stats.boundaries import C_EQ, boundary
from pgstrata.stats.family import DifferenceSeries, benjamini_hochberg, decide_families, decide_family, step_down
from pgstrata.stats.rule import Decision, Rule, decide_many, estimate_many

DELTA = math.log(1.03)
PLAIN = Rule(delta=DELTA)
DIFFERENT = {Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE}

fine = st.integers(-60_000, 60_000).map(lambda k: k / 1e6)
rows = st.tuples(st.lists(fine, min_size=1, max_size=24), fine).map(lambda pair: [x + pair[1] for x in pair[0]])


def series(d, first=1):
    return DifferenceSeries(blocks=tuple(range(first, first + len(d))), d=np.array(d, dtype=float))


def family(*members, rule=PLAIN):
    return decide_family([series(d) for d in members], [rule] * len(members))


def slow_family(members, rules):
    """Block by block with intervals, levels written out anew."""
    settled = {}
    left = len(members)
    for block in range(1, 1 + max(max(member.blocks) for member in members)):
        so_far = {place: member.d[: sum(b <= block for b in member.blocks)] for place, member in enumerate(members)}
        again = True
        while again:
            again = False
            level = boundary(rules[0].alpha / left) if left else None
            crossed = []
            for place, d in so_far.items():
                if place not in settled and len(d):
                    (found,) = estimate_many([d], difference=level)
                    if found.interval and found.interval.excludes_zero:
                        crossed.append((place, len(d), level.alpha))
            for place, n, alpha in crossed:
                settled[place] = ("different", n, alpha)
                again = True
            left -= len(crossed)
        for place, d in so_far.items():
            if place not in settled and len(d):
                (found,) = estimate_many([d])
                if found.equivalence and found.equivalence.reach < rules[place].delta:
                    settled[place] = ("equivalent", len(d), boundary(rules[0].alpha / left).alpha)
    return settled


@given(st.lists(rows, min_size=1, max_size=5), st.lists(st.integers(1, 6), min_size=5, max_size=5))
@settings(max_examples=80, deadline=None)
def test_the_family_decides_as_the_slow_walk_over_blocks(several, firsts):
    members = [series(d, first) for d, first in zip(several, firsts, strict=False)]
    rules = [PLAIN] * len(members)
    expected = slow_family(members, rules)
    for place, found in enumerate(decide_family(members, rules)):
        kind = "different" if found.verdict in DIFFERENT else "equivalent" if found.decided else None
        assert (kind is None) == (place not in expected)
        if kind:
            assert (kind, found.n, found.alpha) == expected[place]
        else:
            assert found.n == len(members[place].d)


@given(rows)
@settings(max_examples=60, deadline=None)
def test_a_family_of_one_is_a_comparison_alone(d):
    (found,), (alone,) = decide_family([series(d)], [PLAIN]), decide_many([d], [PLAIN])
    assert found.block == (found.n if found.decided else None)
    assert replace(found, block=None) == alone


@given(st.lists(rows, min_size=2, max_size=5), st.randoms())
@settings(max_examples=40, deadline=None)
def test_the_order_of_members_plays_no_part(several, random):
    order = random.sample(range(len(several)), len(several))
    straight, mixed = family(*several), family(*(several[place] for place in order))
    assert [straight[place] for place in order] == list(mixed)


@given(st.lists(rows, min_size=1, max_size=4), st.integers(1, 24))
@settings(max_examples=60, deadline=None)
def test_a_headline_never_loses_its_verdict_when_blocks_are_added(several, cut):
    early, late = family(*(d[:cut] for d in several)), family(*several)
    for before, after in zip(early, late, strict=True):
        if before.decided:
            assert (after.verdict, after.n, after.estimate) == (before.verdict, before.n, before.estimate)


def test_three_headlines_share_the_level_and_the_first_found_raises_it_for_the_rest():
    clear = [0.2] * 24
    # one early loser of the smallest size: rank 1 is beyond the .01 boundary from 12 blocks on, the .02 one from 11 on
    late = [-0.01, *[0.2] * 23]
    alone, joined = family(late, [0.1, -0.1] * 12, [0.1, -0.1] * 12), family(late, clear, [0.1, -0.1] * 12)
    assert alone[0].alpha == 0.01
    assert alone[0].n == next(n for n, c in enumerate(boundary(0.01).values, start=boundary(0.01).first) if c >= 1)
    assert joined[1].n == boundary(0.01).first
    assert joined[0].alpha == 0.02
    assert joined[0].n == next(n for n, c in enumerate(boundary(0.02).values, start=boundary(0.02).first) if c >= 1)


def test_a_level_raised_at_a_look_counts_at_the_same_look():
    # At the tenth block the first has nine, unanimous; the second has a small loser, which .045 allows and .02 does not.
    found = decide_family([series([0.2] * 9, first=2), series([-0.01, *[0.2] * 9])], [PLAIN] * 2)
    assert boundary(0.02).critical(10) == 0
    assert boundary(0.045).critical(10) == 1
    assert [each.alpha for each in found] == [0.02, 0.045]
    assert [each.n for each in found] == [9, 10]


def test_a_member_without_new_blocks_profits_from_a_risen_level():
    short = [-0.01, *[0.2] * 9]
    late = DifferenceSeries(blocks=tuple(range(12, 21)), d=np.full(9, 0.2))
    found = decide_family([series(short), late], [PLAIN, PLAIN])
    assert [(each.verdict, each.n, each.alpha) for each in found] == [
        (Verdict.BETTER, 10, 0.045),
        (Verdict.BETTER, 9, 0.02),
    ]


def test_equivalence_is_uncorrected_and_frees_no_level():
    equal = [0.001, -0.001] * 12
    found = family(equal, equal, equal, [0.2] * 24)
    assert [each.verdict for each in found] == [Verdict.EQUIVALENT] * 3 + [Verdict.BETTER]
    assert found[0].n == C_EQ.first
    assert found[0].estimate.interval is None
    assert (found[3].alpha, found[3].n) == (0.01, boundary(0.01).first)


def test_more_headlines_than_the_grid_has_levels_for_find_no_difference_but_equivalence():
    found = family(*[[0.2] * 24] * 91, [0.0] * 24)
    assert [each.verdict for each in found] == [Verdict.INSUFFICIENT] * 91 + [Verdict.EQUIVALENT]
    assert found[0].alpha == pytest.approx(0.045 / 92)
    assert found[0].repeated_p == 0.0005


def test_many_families_at_once_decide_as_each_alone():
    rng = np.random.default_rng(8)
    families = [[series(rng.normal(0.02, 0.03, 24)) for _ in range(m)] for m in (1, 3, 5)]
    rules = [[PLAIN] * len(members) for members in families]
    expected = tuple(decide_family(members, each) for members, each in zip(families, rules, strict=True))
    assert decide_families(families, rules) == expected


def test_an_empty_family_has_no_decisions():
    assert decide_family([], []) == ()


@pytest.mark.parametrize("blocks", [(1, 1), (2, 1), (1,)])
def test_block_numbers_that_do_not_ascend_or_fit_are_refused(blocks):
    with pytest.raises(ValueError, match="ascend"):
        DifferenceSeries(blocks=blocks, d=np.zeros(2))


def test_any_false_headline_is_rare_when_nothing_differs():
    rng = np.random.default_rng(9)
    runs = rng.normal(0, 0.02, (1500, 4, 24))
    families = [[series(arm - base) for arm in arms] for base, *arms in runs]
    decided = decide_families(families, [[PLAIN] * 3] * len(families))
    assert np.mean([any(each.verdict in DIFFERENT for each in members) for members in decided]) <= 0.05


def test_adjusted_p_values_are_those_of_benjamini_and_hochberg():
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.02, 0.04, 0.04, 0.02))


def test_a_comparison_that_crossed_nothing_stays_without_p_and_counts():
    assert benjamini_hochberg([0.01, None, None, 0.1]) == pytest.approx((0.04, None, None, 0.2))
    assert benjamini_hochberg([]) == ()
    with pytest.raises(ValueError, match="between 0 and 1"):
        benjamini_hochberg([1.5])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjusted_p_values_keep_the_order_and_are_never_smaller(p):
    adjusted = benjamini_hochberg(p)
    assert all(before <= after <= 1 for before, after in zip(p, adjusted, strict=True))
    in_order = [adjusted[place] for place in np.argsort(p, kind="stable")]
    assert in_order == sorted(in_order)


def test_holm_finds_what_holm_finds():
    """p values of Holm 1979, by hand: .01 <= .05 / 4, .015 <= .05 / 3, .03 > .05 / 2, and there it ends."""
    p = [0.03, 0.01, 0.04, 0.015]

    def decide_at(places, level):
        return [
            Decision(
                verdict=Verdict.BETTER if p[place] <= level else Verdict.INCONCLUSIVE,
                n=9,
                estimate=None,
                lane=Lane.ONE_LOOK,
                decided=True,
                repeated_p=None,
                alpha=level,
                error=level,
            )
            for place in places
        ]

    found = step_down(4, decide_at, alpha=0.05)
    assert [decision.verdict is Verdict.BETTER for decision in found] == [False, True, False, True]
    assert [decision.alpha for decision in found] == pytest.approx([0.025, 0.0125, 0.025, 0.05 / 3])
