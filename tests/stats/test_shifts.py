"""Cumulative sums alarm as often as is said, and beginnings of shifts are found."""

import math

import numpy as np
import pytest

from pgstrata.stats.shifts import (
    CumulativeSum,
    find_beginning,
    run_length,
    scale_of,
    smallest_found,
    standard_threshold,
    tail_threshold,
    without_level,
)


@pytest.mark.parametrize(("reference", "length"), [(0.5, 2000.0), (1.0, 2000.0), (1.0, 500.0)])
def test_false_alarms_are_as_rare_as_the_threshold_says(reference, length):
    threshold = standard_threshold(reference, length)
    assert run_length(reference, threshold) == pytest.approx(length)
    total = CumulativeSum(reference=reference)
    alarms, steps = 0, 400_000
    for value in np.random.default_rng(1).normal(size=steps).tolist():
        total.add(value, 1.0, math.inf)
        if total.value > threshold:
            alarms += 1
            total.clear()
    # of so many alarms the number is known to a tenth and less
    assert steps / alarms == pytest.approx(length, rel=0.2)


def test_one_step_alone_never_alarms_where_it_can_add_less_than_the_threshold():
    total = CumulativeSum(reference=0.1)
    total.add(1e9, 1.0, 0.4)
    assert (total.value, total.since) == (0.4, 1)
    total.add(-1e9, 1.0, 0.4)
    assert (total.value, total.since) == (0.0, 0)


def test_a_step_that_tells_less_adds_less():
    total = CumulativeSum(reference=0.1)
    total.add(0.3, 0.5, 1.0)
    assert total.value == pytest.approx(0.1)


def test_the_scale_of_neighbours_that_are_alike_is_that_of_their_sums():
    draws = np.random.default_rng(2)
    independent = draws.normal(0, 0.1, 3600)
    alike = np.empty(3600)
    value = 0.0
    for place, draw in enumerate(draws.normal(0, 0.1 * math.sqrt(1 - 0.5**2), 3600)):
        alike[place] = value = 0.5 * value + draw
    assert scale_of(without_level(independent)) == pytest.approx(0.1, rel=0.1)
    # (1 + 0.5) / (1 - 0.5), less what six steps do not hold of it
    assert 0.14 < scale_of(without_level(alike)) < 0.18


def test_outliers_do_not_change_the_scale_and_raise_the_threshold():
    values = np.random.default_rng(3).normal(0, 0.02, 360)
    spiky = values.copy()
    spiky[::60] += 1.0
    assert scale_of(spiky) < 1.3 * scale_of(values)
    quiet, loud = (tail_threshold(each, 0.1, 1e5, 0.33, 2.5) for each in (values, spiky))
    assert quiet == pytest.approx(0.33)
    assert loud > 2 * quiet


def test_few_steps_have_a_larger_scale():
    values = np.random.default_rng(4).normal(0, 0.1, 3600)
    few = np.mean([scale_of(values[place : place + 42]) for place in range(0, 3500, 42)])
    assert few > 1.1 * scale_of(values)


def test_a_beginning_is_found_with_a_set_that_covers_it():
    hits, away = 0, []
    draws = np.random.default_rng(5)
    for _ in range(300):
        values = draws.normal(0, 1.0, 100)
        values[70:] += 1.5
        found = find_beginning(values, 1.5, 1.0)
        assert found.low <= found.place <= found.high
        hits += found.low <= 70 <= found.high
        away.append(abs(found.place - 70))
    assert hits / 300 >= 0.93
    assert np.median(away) <= 2


def test_an_end_is_a_beginning_of_the_opposite_shift_and_gaps_tell_nothing():
    values = np.concatenate([np.zeros(50), np.full(20, -2.0)])
    values[48:50] = math.nan
    found = find_beginning(values, -2.0, 0.01)
    assert found.place in {48, 49, 50}
    assert (found.low, found.high) == (48, 50)


def test_what_is_said_to_be_found_is_found():
    scale, reference, steps = 0.08, 0.11, 5
    threshold = scale * standard_threshold(reference / scale, 120_000.0)
    shift = smallest_found(scale, reference, threshold, steps)
    draws, found = np.random.default_rng(6), 0
    for _ in range(1000):
        total = CumulativeSum(reference=reference)
        for value in draws.normal(shift, scale, steps):
            total.add(float(value), 1.0, math.inf)
            if total.value > threshold:
                found += 1
                break
    assert found >= 940


def test_a_level_that_changes_now_and_then_is_no_scatter():
    values = np.random.default_rng(7).normal(0, 0.05, 360)
    values[150:] += 1.0
    assert scale_of(without_level(values)) < 0.08
    assert scale_of(values) > 0.15
