"""Warm-up, autocorrelation, run length and rounds, on series whose truth is known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.model.floor import RunNoise
from pgstrata.stats.steady import (
    MIN_BATCHES,
    Cut,
    best_rounds,
    best_run_length,
    block_cut,
    choose_batch,
    effective_size,
    is_shift,
    mser5,
    run_cost,
    run_noise,
    slice_components,
    visit_cost,
)

series = st.lists(st.integers(0, 10**6).map(float), min_size=0, max_size=200)


def ar1(rng, size, phi, sd):
    noise = rng.normal(0, sd * math.sqrt(1 - phi**2), size)
    values = np.empty(size)
    values[0] = rng.normal(0, sd)
    for t in range(1, size):
        values[t] = phi * values[t - 1] + noise[t]
    return values


def slow_mser(values, batch):
    """The definition, batch by batch, for cuts up to half."""
    means = [np.mean(values[k : k + batch]) for k in range(0, len(values) - batch + 1, batch)]
    errors = [np.sum((means[d:] - np.mean(means[d:])) ** 2) / (len(means) - d) ** 2 for d in range(len(means) - 4)]
    return int(np.argmin([error for d, error in enumerate(errors) if 2 * d * batch <= len(values)])) * batch


def cut_of(values, batch=5):
    """The cut of a single run."""
    found = mser5(np.asarray(values, dtype=float)[np.newaxis], batch)
    return found[0] if found is not None else None


def test_the_cut_ends_where_the_warm_up_ended():
    rng = np.random.default_rng(1)
    values = 1000 + rng.normal(0, 20, 120)
    values[:30] -= 400 * (1 - np.arange(30) / 30)
    cut = cut_of(values)
    assert cut.steady
    assert 20 <= cut.seconds <= 40


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_the_cut_is_that_of_the_definition(batch):
    for seed in range(10):
        values = 100 + np.random.default_rng(seed).normal(0, 3, 73).cumsum()
        cut = cut_of(values, batch)
        assert cut.seconds == slow_mser(values, batch) if cut.steady else 2 * cut.seconds > 73


def test_a_run_that_climbs_to_its_end_has_no_steady_state():
    values = np.linspace(500, 1000, 60) + np.random.default_rng(2).normal(0, 2, 60)
    assert not cut_of(values).steady


def test_a_run_that_settles_after_more_than_half_has_no_steady_state():
    values = np.where(np.arange(60) < 35, 800.0, 1000.0) + np.random.default_rng(2).normal(0, 20, 60)
    assert cut_of(values) == Cut(seconds=35, steady=False, clear=True)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e9])
def test_constant_values_are_steady_from_the_start(value):
    assert cut_of([value] * 60) == Cut(seconds=0, steady=True)


def test_steady_noise_seldom_shows_a_warm_up_of_its_own():
    rng = np.random.default_rng(4)
    cuts = [cut_of(1000 + ar1(rng, 60, 0.6, 40)) for _ in range(2000)]
    assert sum(cut.clear for cut in cuts) / len(cuts) <= 0.01


def test_most_runs_that_begin_at_half_their_speed_show_it():
    rng = np.random.default_rng(5)
    runs = [1000 * (1 - 0.5 * np.exp(-np.arange(60) / 10)) + ar1(rng, 60, 0.6, 40) for _ in range(200)]
    assert sum(cut_of(run).clear for run in runs) >= 150


def test_steady_noise_is_seldom_called_unsteady():
    rng = np.random.default_rng(3)
    cuts = [cut_of(1000 + ar1(rng, 60, 0.6, 40)) for _ in range(2000)]
    assert sum(not cut.steady for cut in cuts) / len(cuts) <= 0.02


def test_too_few_batches_say_nothing():
    assert cut_of(np.ones(5 * MIN_BATCHES - 1)) is None
    assert cut_of([]) is None
    assert cut_of(np.ones(5 * MIN_BATCHES)) is not None


@pytest.mark.parametrize(("seconds", "batch"), [(3, 1), (12, 1), (30, 2), (60, 5), (3600, 5)])
def test_short_runs_get_short_batches(seconds, batch):
    assert choose_batch(seconds) == batch
    assert seconds < 12 or cut_of(np.ones(seconds), batch) is not None


@given(series, st.integers(1, 7))
@settings(max_examples=60)
def test_a_cut_leaves_values_over_and_scaling_changes_nothing(values, batch):
    cut = cut_of(values, batch)
    if cut is not None:
        assert 0 <= cut.seconds <= len(values) - 5 * batch
        assert cut_of(np.array(values) * 4, batch) == cut


def test_the_longest_cut_of_a_block_holds_for_all():
    cuts = [Cut(seconds=5, steady=True), None, Cut(seconds=20, steady=True)]
    assert block_cut(cuts) == Cut(seconds=20, steady=True)
    assert block_cut([*cuts, Cut(seconds=15, steady=False)]) == Cut(seconds=20, steady=False)
    assert block_cut([None]) is None
    assert block_cut([]) is None


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


@pytest.mark.parametrize(
    ("sigma_round", "sigma_start", "dead", "seconds", "rounds"),
    [
        (0.02, 0.0055, 4.4, 4.0, 4),
        (0.02, 0.0, 4.4, 4.0, 16),
        (0.02, 0.00001, 4.4, 4.0, 16),
        (0.02, 0.05, 4.4, 4.0, 2),
        (0.0, 0.01, 4.4, 4.0, 2),
        (0.02, 0.0055, 0.0, 4.0, 2),
    ],
)
def test_rounds_balance_dead_time_and_the_variance_between_starts(sigma_round, sigma_start, dead, seconds, rounds):
    assert best_rounds(sigma_round, sigma_start, dead, seconds) == rounds


@pytest.mark.parametrize("overhead", [20, 90, 300])
def test_no_other_run_length_costs_less_than_the_best(overhead):
    noise = RunNoise(phi=0.6, second=0.04**2, run=0.02**2, seconds=60)
    best = best_run_length(noise, overhead)
    costs = [run_cost(noise, overhead, best * factor) for factor in (0.5, 0.9, 1.0, 1.1, 2.0)]
    assert min(costs) == costs[2]


def test_the_cost_of_a_visit_is_flat_around_the_best_rounds_and_grows_away_from_them():
    costs = {rounds: visit_cost(0.02, 0.0055, 60.0, 4.0, rounds) for rounds in range(2, 17)}
    best = best_rounds(0.02, 0.0055, 60.0, 4.0)
    assert best == 14
    assert costs[best] < 1.05 * min(costs.values())
    assert costs[2] > 1.5 * costs[best]


def test_the_variance_in_the_cost_of_a_visit_is_that_of_simulated_visits():
    rng = np.random.default_rng(12)
    medians = [float(np.median(visit)) for visit in draw_visits(rng, 20_000, 8, 0.02, 0.005)]
    assert visit_cost(0.02, 0.005, 4.0, 1.0, 8) == pytest.approx(np.var(medians) * 12, rel=0.05)


def test_rounds_without_duration_are_refused():
    with pytest.raises(ValueError, match="takes time"):
        best_rounds(0.02, 0.01, 4, 0)


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


# ------------------------------------------------------------------------------------------------ many runs at once


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 120), st.sampled_from([1, 2, 5]))
def test_runs_are_cut_together_as_each_by_itself(seed, runs, seconds, batch):
    values = np.random.default_rng(seed).normal(100, 5, (runs, seconds)).cumsum(axis=1)
    together = mser5(values, batch)
    alone = [cut_of(row, batch) for row in values]
    assert alone == (together if together is not None else [None] * runs)


def test_mser_cuts_every_second_steady_run_and_the_longest_cut_of_two_costs_a_quarter():
    """What the docstring of `is_shift` says: seconds with a lag-1 autocorrelation of 0.6 and nothing else."""
    rng = np.random.default_rng(11)
    values = np.array([1000 + ar1(rng, 60, 0.6, 40) for _ in range(2000)])
    seconds = np.array([cut.seconds for cut in mser5(values)])
    assert np.mean(seconds > 0) == pytest.approx(0.48, abs=0.05)
    assert seconds.mean() == pytest.approx(8, abs=1)
    longest = np.minimum(seconds.reshape(-1, 2).max(axis=1).repeat(2), 30)
    after = np.array([row[cut:].mean() for row, cut in zip(values, longest, strict=True)])
    spread = [np.std(np.log(means[0::2] / means[1::2])) for means in (after, values.mean(axis=1))]
    assert spread[0] / spread[1] == pytest.approx(1.25, abs=0.1)


# ------------------------------------------------------------------------------------------------ is there a warm-up


def test_one_in_a_hundred_steady_cells_is_taken_for_one_that_warms_up():
    rng = np.random.default_rng(12)
    for size in (6, 12, 40):
        assert np.mean([is_shift(rng.normal(0, 1, size)) for _ in range(4000)]) == pytest.approx(0.01, abs=0.006)


def test_what_all_runs_share_is_seen_and_five_runs_are_too_few():
    assert is_shift([-0.1, -0.12, -0.09, -0.11, -0.1, -0.08])
    assert is_shift([0.1] * 6)
    assert not is_shift([-0.1] * 5)
    assert not is_shift([0.0] * 10)
    assert not is_shift([])


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=20))
def test_the_direction_of_a_shift_does_not_matter(shifts):
    assert is_shift(shifts) == is_shift([-shift for shift in shifts])
