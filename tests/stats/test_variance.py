"""Autocorrelation and rounds, on series whose truth is known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.stats.variance import (
    effective_size,
    slice_components,
)

series = st.lists(st.integers(0, 10**6).map(float), min_size=0, max_size=200)


def ar1(rng, size, phi, sd):
    noise = rng.normal(0, sd * math.sqrt(1 - phi**2), size)
    values = np.empty(size)
    values[0] = rng.normal(0, sd)
    for t in range(1, size):
        values[t] = phi * values[t - 1] + noise[t]
    return values


@pytest.mark.parametrize("phi", [0.0, 0.6, 0.9])
def test_the_effective_size_is_that_of_the_autoregression(phi):
    rng = np.random.default_rng(5)
    found = [effective_size(ar1(rng, 5000, phi, 1.0)) for _ in range(20)]
    assert np.median(found) == pytest.approx(5000 * (1 - phi) / (1 + phi), rel=0.1)


def test_alternating_values_are_worth_no_more_than_their_number():
    assert effective_size([1.0, 2.0] * 20) == 40


@pytest.mark.parametrize("values", [[], [1.0] * 60, [1.0, 2.0, 3.0], [math.nan] * 60, [0.1] * 59 + [math.inf]])
def test_without_variation_or_with_gaps_there_is_no_effective_size(values):
    assert effective_size(values) is None


@given(series)
@settings(max_examples=60)
def test_the_effective_size_lies_between_one_and_the_number_of_seconds(values):
    found = effective_size(values)
    assert found is None or 1 <= found <= len(values)


def draw_visits(rng, visits, rounds, sigma_round, sigma_start):
    return [rng.normal(0, sigma_start) + rng.normal(0, sigma_round, rounds) for _ in range(visits)]


@pytest.mark.parametrize("rounds", [2, 3, 4, 8])
def test_the_components_of_slices_are_found_again(rounds):
    found = slice_components(draw_visits(np.random.default_rng(rounds), 3000, rounds, 0.02, 0.015))
    assert found.sigma_round == pytest.approx(0.02, rel=0.05)
    assert found.sigma_start == pytest.approx(0.015, rel=0.1)
    assert (found.visits, found.rounds) == (3000, rounds)


@pytest.mark.parametrize(("visits", "sigma_start"), [(8, 0.01), (17, 0.01), (17, 0.02), (12, 0.0)])
def test_the_upper_limit_of_the_start_holds_in_nine_of_ten(visits, sigma_start):
    rng = np.random.default_rng(10)
    found = [slice_components(draw_visits(rng, visits, 4, 0.02, sigma_start)) for _ in range(1000)]
    assert np.mean([one.sigma_start_upper >= sigma_start for one in found]) >= 0.88


def test_a_stalled_slice_and_a_stalled_visit_hardly_count():
    rng = np.random.default_rng(11)
    visits = draw_visits(rng, 600, 4, 0.02, 0.01)
    for visit in visits[:18]:
        visit[:] -= 0.4
    for visit in visits[18:66]:
        visit[0] -= 0.7
    found = slice_components(visits)
    assert found.sigma_round == pytest.approx(0.02, rel=0.1)
    assert found.sigma_start == pytest.approx(0.01, rel=0.35)


@pytest.mark.parametrize("visits", [[], [[0.1, 0.2]] * 4, [[0.1]] * 10, [[math.nan, 0.1]] * 10])
def test_few_visits_have_no_components(visits):
    assert slice_components(visits) is None


def test_visits_without_noise_have_components_of_zero():
    found = slice_components([[0.0, 0.0, 0.0]] * 6)
    assert (found.sigma_round, found.sigma_start, found.sigma_start_upper) == (0, 0, 0)
