"""Forecasts against the rule itself."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.model.answer import Verdict
from pgstrata.stats import power as forecasts
from pgstrata.stats.floor import noise_floor
from pgstrata.stats.power import EFFECTS, forecast, smallest_effect
from pgstrata.stats.rule import Rule, decide_many

DRAWS = 1500


def drawn(s0, effect, rule, seed):
    """Share of right verdicts, of any verdict, and mean blocks, by the rule on noise of that floor."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(DRAWS, rule.last))
    outliers = rng.uniform(7, 30, noise.shape) * rng.choice((-1.0, 1.0), noise.shape)
    noise += np.where(rng.random(noise.shape) < 0.07, outliers, 0.0)
    d = s0 * noise / noise_floor(noise) + math.log1p(effect)
    decisions = decide_many(list(d), [rule] * DRAWS)
    if effect:
        found = {Verdict.BETTER, Verdict.NEGLIGIBLE}
        right = [one.verdict in found and one.estimate.centre > 0 for one in decisions]
    else:
        right = [one.verdict is Verdict.EQUIVALENT for one in decisions]
    blocks = np.mean([one.n for one in decisions])
    return np.mean(right), np.mean([one.decided for one in decisions]), blocks


@pytest.mark.parametrize(
    ("s0", "threshold", "last", "alpha"),
    [
        (0.03, 0.03, 24, 0.045),
        (0.023, 0.03, 16, 0.045),
        (0.06, 0.05, 24, 0.045),
        (0.012, 0.03, 12, 0.045),
        (0.02, 0.02, 9, 0.045),
        (0.03, 0.03, 24, 0.01),
        (0.025, 0.03, 20, 0.005),
        (0.008, 0.03, 12, 0.045),
        (0.002, 0.03, 12, 0.045),
    ],
)
@pytest.mark.parametrize("effect", EFFECTS)
def test_the_forecast_is_what_the_rule_does(s0, threshold, last, alpha, effect):
    delta = math.log1p(threshold)
    (power,) = forecast(s0, delta, last, (effect,), alpha=alpha)
    right, decided, blocks = drawn(s0, effect, Rule(delta=delta, alpha=alpha, last=last), seed=11)
    assert power.probability == pytest.approx(right, abs=0.05)
    assert power.decided == pytest.approx(decided, abs=0.05)
    assert power.blocks == pytest.approx(blocks, abs=0.6)


def test_no_interval_is_computed_for_more_blocks_than_are_planned(monkeypatch):
    """Those of sixty blocks take ten times as long as those of twenty-four, and few plans have so many."""
    asked = []
    compute = forecasts._ends_after

    def note(level, n):
        asked.append(n)
        return compute(level, n)

    monkeypatch.setattr(forecasts, "_ends_after", note)
    forecast(0.031, math.log1p(0.03), 13)
    smallest_effect(0.031, math.log1p(0.03), 13)
    assert max(asked) == 13


@pytest.mark.parametrize("s0", [0.002, 0.01, 0.03, 0.1])
def test_larger_effects_are_found_more_often_and_sooner(s0):
    powers = forecast(s0, math.log(1.03), 24, (0.01, 0.02, 0.03, 0.05, 0.10, 0.5))
    chances = [power.probability for power in powers]
    assert chances == pytest.approx(sorted(chances), abs=0.01)
    assert powers[-1].blocks <= powers[2].blocks


def test_the_sign_of_an_effect_does_not_matter_and_equality_stands_for_itself():
    up, down, same = forecast(0.02, 0.03, 24, (0.05, -0.05, 0.0))
    assert up.probability == pytest.approx(down.probability)
    assert same.effect == 0
    assert same.probability > 0.7


def test_without_blocks_nothing_is_decided():
    for power in forecast(0.02, 0.03, 0):
        assert (power.probability, power.decided, power.blocks) == (0, 0, 0)


def test_more_blocks_than_the_rule_has_are_not_used():
    assert forecast(0.02, 0.03, 100) == forecast(0.02, 0.03, 60)


@given(st.floats(1e-6, 2), st.floats(0, 1), st.integers(0, 80), st.floats(0, 1))
@settings(max_examples=80)
def test_forecasts_are_probabilities(s0, delta, blocks, effect):
    (power,) = forecast(s0, delta, blocks, (effect,))
    assert 0 <= power.probability <= power.decided + 1e-9 <= 1 + 2e-9
    assert 0 <= power.blocks <= min(blocks, 60)


def test_the_smallest_effect_is_found_in_four_of_five():
    s0, delta = 0.02, math.log(1.03)
    effect = smallest_effect(s0, delta, 16)
    (power,) = forecast(s0, delta, 16, (effect,))
    assert power.probability == pytest.approx(0.8, abs=0.002)
    assert smallest_effect(s0, delta, 24) < effect < smallest_effect(s0, delta, 8)


def test_too_few_blocks_show_no_effect_at_all():
    assert smallest_effect(0.02, 0.03, 2) is None
    assert smallest_effect(0.02, 0.03, 9, alpha=0.0005) is None


@pytest.mark.parametrize("s0", [0.0, -0.1, math.nan, math.inf])
def test_a_floor_that_is_none_is_refused(s0):
    with pytest.raises(ValueError, match="above zero"):
        forecast(s0, 0.03, 24)
