"""Anomalies of runs and curves, modes, and what new data make of them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.stats.anomaly import (
    LEAST,
    find_kinks,
    find_modes,
    fisher_exact,
    judge_stability,
)

CLIENTS = np.array([1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 78, 96, 128])


def curve(clients=CLIENTS):
    """Amdahl-like, in logs: rises, bends, falls a little."""
    return np.log(clients / (1 + 0.05 * (clients - 1) + 0.0002 * clients * (clients - 1)))


def test_a_run_far_from_the_median_is_an_anomaly_and_asks_for_a_block():
    found = judge_stability([0.0, 0.01, -0.01, 0.0, 0.02, -0.3, 0.01], 0.02)
    assert found.anomalies == (5,)
    assert len(found.anomalies) == 1
    assert found.rate == pytest.approx(1 / 7)
    assert not found.is_unstable


def test_before_six_runs_none_is_judged():
    found = judge_stability([0.0, 0.0, 0.0, 0.0, -2.0], 0.01)
    assert (found.anomalies, found.judged, found.rate, found.is_unstable) == ((), 0, 0.0, False)
    assert judge_stability([], None).judged == 0


def test_the_limit_is_four_floors_of_a_run_and_never_below_five_percent():
    assert judge_stability([0.0] * 7, 0.04).limit == pytest.approx(4 * 0.04 / math.sqrt(2))
    assert judge_stability([0.0] * 7, 0.001).limit == LEAST
    assert judge_stability([0.0] * 7, None).limit == LEAST


def test_without_a_floor_the_runs_themselves_say_how_they_vary():
    logs = np.random.default_rng(1).normal(0, 0.1, 24)
    assert judge_stability(logs, None).anomalies == ()
    assert judge_stability(logs, 0.02).anomalies != ()


def test_missing_runs_keep_their_place():
    found = judge_stability([0.0, math.nan, 0.0, 0.01, -0.01, 0.0, 0.5, 0.0], 0.02)
    assert (found.anomalies, found.judged) == ((6,), 7)


def test_more_than_a_fifth_of_anomalies_is_unstable():
    steady = [0.0, 0.005, -0.005, 0.01, -0.01, 0.0]
    assert not judge_stability([*steady, -0.3, 0.4], 0.02).is_unstable
    assert judge_stability([*steady, -0.3, 0.4, -0.5], 0.02).is_unstable


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=24), st.floats(-3, 3))
@settings(max_examples=60)
def test_the_height_of_all_runs_changes_nothing(logs, height):
    values = np.round(logs, 6)
    before, after = judge_stability(values, 0.02), judge_stability(values + np.round(height, 6), 0.02)
    assert before.judged == after.judged
    close = np.isclose(np.abs(values - np.median(values)), before.limit, atol=1e-9).any()
    assert close or before.anomalies == after.anomalies


def test_two_speeds_are_told_apart():
    rng = np.random.default_rng(2)
    logs = np.concatenate([rng.normal(0, 0.01, 9), rng.normal(-0.3, 0.01, 5)])
    modes = find_modes(rng.permutation(logs))
    assert modes.low == pytest.approx(-0.3, abs=0.02)
    assert modes.high == pytest.approx(0.0, abs=0.02)
    assert modes.share_high == pytest.approx(9 / 14)
    assert judge_stability(logs, 0.015).is_unstable
    assert find_modes(logs, 0.015) == modes
    assert find_modes(logs, 0.12) is None


@pytest.mark.parametrize("n", [8, 12, 16, 24])
def test_one_speed_is_seldom_called_two(n):
    rng = np.random.default_rng(n)
    normal = [find_modes(rng.normal(0, 1, n)) is not None for _ in range(2000)]
    heavy = [find_modes(rng.standard_t(3, n)) is not None for _ in range(2000)]
    assert np.mean(normal) <= 0.02
    assert np.mean(heavy) <= 0.03


@pytest.mark.parametrize("logs", [[], [0.1] * 7, [0.1] * 20, [0.0] * 10 + [0.001] * 10, [0.0] * 18 + [9.0] * 2])
def test_equal_few_or_close_values_and_two_outliers_are_no_modes(logs):
    assert find_modes(logs) is None


def test_two_values_without_any_noise_are_two_modes():
    assert find_modes([0.0] * 5 + [1.0] * 5).share_high == 0.5


@pytest.mark.parametrize(
    ("table", "p"),
    [
        ((3, 4, 1, 4), 34 / 70),  # Fisher's tea: 17 / 70 on each side
        ((0, 10, 10, 10), 2 / 184756),
        ((8, 10, 1, 6), 0.034965),  # men and women of the textbook
        ((0, 5, 0, 9), 1.0),
        ((0, 0, 3, 9), 1.0),
        ((5, 5, 9, 9), 1.0),
    ],
)
def test_the_p_value_of_a_table_is_fishers(table, p):
    assert fisher_exact(*table) == pytest.approx(p, rel=1e-4)


@given(st.integers(0, 30), st.integers(0, 30), st.data())
@settings(max_examples=80)
def test_fishers_p_is_a_probability_and_knows_no_order(size, other_size, data):
    found, other = data.draw(st.integers(0, size)), data.draw(st.integers(0, other_size))
    p = fisher_exact(found, size, other, other_size)
    assert 0 < p <= 1
    assert p == fisher_exact(other, other_size, found, size)
    assert p == fisher_exact(size - found, size, other_size - other, other_size)


def test_ten_thousand_runs_are_no_trouble_for_fisher():
    assert fisher_exact(300, 10_000, 400, 10_000) == pytest.approx(1.5e-4, rel=0.2)


@pytest.mark.parametrize("table", [(-1, 4, 0, 4), (5, 4, 0, 4), (0, 4, 5, 4)])
def test_counts_beyond_their_size_are_refused(table):
    with pytest.raises(ValueError, match="not shares"):
        fisher_exact(*table)


@pytest.mark.parametrize("place", range(1, 12))
def test_a_dent_is_found_where_it_is_and_nowhere_else(place):
    logs = curve() + np.random.default_rng(place).normal(0, 0.008, (7, CLIENTS.size))
    logs[:, place] -= math.log(1.15)
    (kink,) = find_kinks(CLIENTS, logs)
    assert kink.place == place
    assert abs(kink.witness - place) <= 1
    assert abs(kink.residual) > kink.limit >= LEAST


def test_the_residual_of_a_dent_in_a_straight_stretch_is_its_depth():
    logs = np.log(CLIENTS.astype(float))
    logs[5] -= 0.2
    (kink,) = find_kinks(CLIENTS, logs)
    assert (kink.place, kink.witness, kink.residual, kink.limit) == (5, 5, pytest.approx(-0.2), LEAST)


def test_two_dents_are_found_both():
    logs = curve()
    logs[3] -= 0.2
    logs[9] += 0.2
    assert [kink.place for kink in find_kinks(CLIENTS, logs)] == [3, 9]


def test_a_sharp_bend_is_no_kink():
    logs = np.log(np.minimum(CLIENTS, 9.0))
    assert find_kinks(CLIENTS, logs) == ()
    assert find_kinks(CLIENTS[::2], logs[::2]) == ()


def test_blocks_that_scatter_more_allow_more():
    logs = np.tile(np.log(CLIENTS.astype(float)), (7, 1)) + np.random.default_rng(9).normal(0, 0.1, (7, 13))
    assert find_kinks(CLIENTS, logs) == ()
    (kink,) = find_kinks(CLIENTS, logs - 0.5 * (CLIENTS == 32))
    assert kink.limit > 0.1


def test_a_smooth_curve_has_no_kinks():
    assert find_kinks(CLIENTS, curve()) == ()
    assert find_kinks(CLIENTS, np.zeros(CLIENTS.size)) == ()


def test_missing_points_keep_their_place_and_few_points_are_not_judged():
    logs = curve()
    logs[8] -= 0.2
    logs[2] = math.nan
    assert [kink.place for kink in find_kinks(CLIENTS, logs)] == [8]
    assert find_kinks(CLIENTS[:4], [0.0, 1.0, -5.0, 2.0]) == ()
    assert find_kinks([], []) == ()


@pytest.mark.parametrize("clients", [[0, 1, 2, 3, 4], [1, 2, 2, 3, 4], [4, 3, 2, 1, 0.5]])
def test_clients_that_do_not_ascend_are_refused(clients):
    with pytest.raises(ValueError, match="ascend"):
        find_kinks(clients, [0.0] * 5)
