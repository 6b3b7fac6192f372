"""The search along levels ends, finds the step where comparisons are right, and says what it does not know."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compared import compared as make_compared
from pgstrata.errors import UsageError
from pgstrata.model.answer import Verdict
from pgstrata.model.experiment import ControlKind
from pgstrata.plan.bisection import (
    LevelSide,
    Search,
    half_threshold,
    levels_along,
    pair_experiment,
    side_of,
    side_of_ends,
)
from pgstrata.stats.rule import Rule, decide_many
from studies import make_environment, make_experiment

MOST = 200


def compared(verdict, effect):
    return make_compared("b", verdict, effect, spread=0.01)


def follow(search, answer):
    asked = []
    while (place := search.next) is not None:
        asked.append(place)
        search = search.learn(place, answer(place))
    return search, asked


@given(data=st.data())
def test_the_right_step_is_found_by_halving(data):
    count = data.draw(st.integers(2, MOST))
    step = data.draw(st.integers(1, count - 1))
    search, asked = follow(Search(count=count), lambda place: LevelSide.LAST if place >= step else LevelSide.FIRST)
    assert (search.first, search.last, search.is_exact) == (step - 1, step, True)
    assert len(asked) <= math.ceil(math.log2(count - 1))


@given(data=st.data())
def test_levels_that_cannot_be_measured_leave_a_range_around_the_step(data):
    count = data.draw(st.integers(2, 60))
    step = data.draw(st.integers(1, count - 1))
    bad = data.draw(st.sets(st.integers(1, max(1, count - 2)), max_size=count))

    def answer(place):
        if place in bad:
            return LevelSide.SKIPPED
        return LevelSide.LAST if place >= step else LevelSide.FIRST

    search, asked = follow(Search(count=count), answer)
    assert search.first < step <= search.last
    assert all(place in bad for place in range(search.first + 1, search.last))
    # no more is left than the levels around the step that cannot be measured
    assert search.first == max(place for place in range(step) if place not in bad or place == 0)
    assert search.last == min(place for place in range(step, count) if place not in bad or place == count - 1)
    assert len(asked) == len(set(asked))


@given(count=st.integers(2, MOST), rng=st.randoms(use_true_random=False))
def test_it_always_ends_whatever_comes_out(count, rng):
    search, asked = follow(Search(count=count), lambda _: rng.choice(list(LevelSide)))
    assert len(asked) <= count - 2 or count == 2
    assert 0 <= search.first < search.last <= count - 1
    undecided = [place for place, side in search.found.items() if side is LevelSide.UNDECIDED]
    assert undecided in ([], asked[-1:])


def search_drawn(rng, *, count, step, change, sd):
    """A whole search on drawn block differences: what is left, and the runs that it took."""
    runs = 0

    def compare(place, threshold):
        nonlocal runs
        sample = rng.normal(change if place >= step else 0.0, sd, 24)
        (decision,) = decide_many([sample], [Rule(delta=math.log1p(threshold))])
        runs += 2 * decision.n
        return compared(decision.verdict, math.exp(decision.estimate.centre))

    ends = compare(count - 1, 0.03)
    if side_of_ends(ends) is not LevelSide.LAST:
        return None, runs
    threshold = half_threshold(ends, 0.03)
    search, _ = follow(Search(count=count), lambda place: side_of(compare(place, threshold), ends))
    return search, runs


def test_a_change_well_above_the_noise_is_found_in_few_runs():
    rng = np.random.default_rng(11)
    steps = rng.integers(1, 9, 60).tolist()
    found = [search_drawn(rng, count=9, step=step, change=-0.05, sd=0.015) for step in steps]
    right = [
        search is not None and search.is_exact and search.last == step
        for (search, _), step in zip(found, steps, strict=True)
    ]
    assert sum(right) >= 57
    # four comparisons of two environments; all nine in 8 blocks would be 72, and say less
    assert np.mean([runs for _, runs in found]) < 75


def test_what_is_settled_is_not_asked_again():
    search = Search(count=9).learn(4, LevelSide.FIRST)
    for place in (0, 2, 4, 8):
        with pytest.raises(ValueError, match="level"):
            search.learn(place, LevelSide.LAST)


@pytest.mark.parametrize(
    ("verdict", "effect", "side"),
    [
        (Verdict.WORSE, 0.9, LevelSide.LAST),
        (Verdict.BETTER, 1.1, LevelSide.LAST),
        (Verdict.COLLAPSED, None, LevelSide.LAST),
        (Verdict.EQUIVALENT, 0.99, LevelSide.FIRST),
        (Verdict.NEGLIGIBLE, 0.98, LevelSide.FIRST),
        (Verdict.INCONCLUSIVE, 0.96, LevelSide.UNDECIDED),
        (Verdict.INSUFFICIENT, None, LevelSide.UNDECIDED),
        (Verdict.UNSTABLE, None, LevelSide.UNDECIDED),
    ],
)
def test_ends_differ_where_the_rule_says_so(verdict, effect, side):
    assert side_of_ends(compared(verdict, effect)) is side


@pytest.mark.parametrize(
    ("ends", "level", "side"),
    [
        ((Verdict.WORSE, 0.9), (Verdict.WORSE, 0.91), LevelSide.LAST),
        ((Verdict.WORSE, 0.9), (Verdict.EQUIVALENT, 0.995), LevelSide.FIRST),
        # a small difference is one, but the level is nearer to the first end all the same
        ((Verdict.WORSE, 0.9), (Verdict.WORSE, 0.96), LevelSide.FIRST),
        ((Verdict.WORSE, 0.9), (Verdict.NEGLIGIBLE, 0.94), LevelSide.LAST),
        # away from both ends, on the side of the first
        ((Verdict.WORSE, 0.9), (Verdict.BETTER, 1.2), LevelSide.FIRST),
        ((Verdict.BETTER, 1.2), (Verdict.BETTER, 1.5), LevelSide.LAST),
        ((Verdict.WORSE, 0.9), (Verdict.INCONCLUSIVE, 0.95), LevelSide.UNDECIDED),
        ((Verdict.WORSE, 0.9), (Verdict.UNSTABLE, None), LevelSide.UNDECIDED),
        ((Verdict.WORSE, 0.9), (Verdict.COLLAPSED, None), LevelSide.SKIPPED),
        ((Verdict.COLLAPSED, None), (Verdict.COLLAPSED, None), LevelSide.LAST),
        ((Verdict.COLLAPSED, None), (Verdict.WORSE, 0.5), LevelSide.FIRST),
        ((Verdict.COLLAPSED, None), (Verdict.INSUFFICIENT, None), LevelSide.UNDECIDED),
    ],
)
def test_a_level_belongs_to_the_end_that_it_is_nearer_to(ends, level, side):
    assert side_of(compared(*level), compared(*ends)) is side


def test_the_threshold_of_a_step_is_half_of_the_difference_of_the_ends():
    assert half_threshold(compared(Verdict.WORSE, 0.81), 0.03) == pytest.approx(1 / 0.9 - 1, abs=1e-6)
    assert half_threshold(compared(Verdict.BETTER, 1.21), 0.03) == pytest.approx(0.1, abs=1e-6)
    assert half_threshold(compared(Verdict.COLLAPSED, None), 0.03) == 0.03


def crossed():
    names = [(server, buffers) for server in ("14", "15", "16") for buffers in ("1GB", "4GB")]
    return make_experiment(
        [
            make_environment(f"{server}-{buffers}", server, levels={"server": server, "buffers": buffers})
            for server, buffers in names
        ],
        factors=("server", "buffers"),
    )


def test_levels_are_those_of_one_factor_with_the_others_as_in_the_baseline():
    experiment = crossed()
    control = replace(experiment.environments[0], name="control", control=ControlKind.SAME)
    experiment = replace(experiment, environments=(*experiment.environments, control), baseline="15-4GB")
    key, levels = levels_along(experiment, "server")
    assert (key, [level.name for level in levels]) == ("server", ["14-4GB", "15-4GB", "16-4GB"])


@pytest.mark.parametrize(
    ("factor", "what"), [(None, "several factors"), ("host", "no factor 'host'"), ("buffers", "has 2 levels")]
)
def test_a_factor_that_cannot_be_searched_is_refused(factor, what):
    with pytest.raises(UsageError, match=what) as caught:
        levels_along(crossed(), factor)
    assert caught.value.remedy


def test_the_only_factor_need_not_be_named():
    experiment = make_experiment([make_environment(name, name) for name in ("14", "15", "16")])
    assert levels_along(experiment, None)[0] == "server"
    with pytest.raises(UsageError, match="no factor"):
        levels_along(replace(experiment, factors=()), None)


def test_a_step_is_a_question_of_two_environments_with_its_own_threshold():
    experiment = replace(crossed(), budget=60.0)
    pair = (experiment.environments[0], experiment.environments[4])
    step = pair_experiment(experiment, "server", pair, 0.05)
    assert (step.baseline, step.environments, step.threshold, step.budget) == ("14-1GB", pair, 0.05, None)
    assert (step.question, step.factors) == ("Does 16 differ from 14?", ("server",))
