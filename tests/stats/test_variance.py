"""Autocorrelation, run length and rounds, on series whose truth is known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.model.floor import RunNoise
from pgstrata.stats.variance import (
    best_run_length,
    effective_size,
    run_cost,
    run_noise,
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


@pytest.mark.parametrize(("overhead", "seconds"), [(30, 21.9), (90, 37.9), (300, 69.3)])
def test_the_best_run_length_is_that_of_the_formula(overhead, seconds):
    noise = RunNoise(phi=0.6, second=0.04**2, run=0.02**2, seconds=60)
    assert best_run_length(noise, overhead) == pytest.approx(seconds, abs=0.1)


def test_the_best_run_length_is_kept_within_reason():
    noise = RunNoise(phi=0.9, second=0.3**2, run=0.001**2, seconds=60)
    assert best_run_length(noise, 300) == 600
    assert best_run_length(noise, 0) == 10
    assert best_run_length(RunNoise(phi=0.6, second=0.01, run=0.0, seconds=60), 30) is None


def draw_runs(rng, runs, seconds=60, between=0.02):
    return [1000 * np.exp(rng.normal(0, between)) * (1 + ar1(rng, seconds, 0.6, 0.04)) for _ in range(runs)]


def test_the_components_of_the_noise_are_found_again():
    rng = np.random.default_rng(6)
    noise = run_noise(draw_runs(rng, 600))
    assert noise.phi == pytest.approx(0.6, abs=0.05)
    assert math.sqrt(noise.second) == pytest.approx(0.04, rel=0.1)
    assert math.sqrt(noise.run) == pytest.approx(0.02, rel=0.1)
    assert best_run_length(noise, 90) == pytest.approx(37.9, rel=0.2)


def test_differences_free_the_components_of_a_drift():
    rng = np.random.default_rng(7)
    runs = [run * drift for run, drift in zip(draw_runs(rng, 400), np.linspace(0.8, 1.2, 400), strict=True)]
    differences = rng.normal(0, math.sqrt(2) * math.hypot(0.02, 0.04 * 2 / math.sqrt(60)), 400)
    assert math.sqrt(run_noise(runs).run) > 0.05
    assert math.sqrt(run_noise(runs, differences).run) == pytest.approx(0.02, rel=0.15)


def test_stalled_seconds_and_runs_hardly_count():
    rng = np.random.default_rng(8)
    runs = draw_runs(rng, 100)
    for run in runs[:5]:
        run[:] *= 0.6
        run[10:14] = 0
    noise = run_noise(runs)
    assert math.sqrt(noise.second) == pytest.approx(0.04, rel=0.15)
    assert math.sqrt(noise.run) == pytest.approx(0.02, rel=0.3)


@pytest.mark.parametrize("runs", [[], [[1.0] * 60] * 20, [[0.0] * 60] * 20, [[1.0, 2.0]] * 20, [[math.nan] * 60] * 20])
def test_runs_that_tell_nothing_have_no_components(runs):
    assert run_noise(runs) is None


def test_runs_explained_by_their_seconds_have_nothing_left_between_them():
    noise = run_noise(draw_runs(np.random.default_rng(9), 30), differences=[0.0] * 12)
    assert noise.run == 0
    assert best_run_length(noise, 30) is None


@pytest.mark.parametrize("overhead", [20, 90, 300])
def test_no_other_run_length_costs_less_than_the_best(overhead):
    noise = RunNoise(phi=0.6, second=0.04**2, run=0.02**2, seconds=60)
    best = best_run_length(noise, overhead)
    costs = [run_cost(noise, overhead, best * factor) for factor in (0.5, 0.9, 1.0, 1.1, 2.0)]
    assert min(costs) == costs[2]


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
