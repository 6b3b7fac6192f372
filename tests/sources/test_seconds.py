"""Throughput by the second of a run, and the warning of a warm-up that went on while it was measured."""

import math
from dataclasses import replace

import numpy as np
import pytest

from pgstrata.compare import compare_study
from pgstrata.model.metrics import Series
from pgstrata.model.runs import Validity
from pgstrata.sources.seconds import opening_of, seconds_of
from studies import BASE, OTHER, codes, make_plan, make_run

SECONDS = 60


def run_of(environment, block, values, **rest):
    """A run whose series holds those values by second."""
    series = Series(metric="tps", times=tuple(range(1, len(values) + 1)), values=tuple(values))
    return replace(make_run(environment, block, tps=float(np.mean(values)), **rest), series=(series,))


def steady(random, level=1000.0):
    return level * (1 + 0.03 * random.normal(size=SECONDS))


def warming(random, level=1000.0, *, by=0.5, seconds=10.0):
    return steady(random, level) * (1 - by * np.exp(-np.arange(SECONDS) / seconds))


def climbing(random):
    return steady(random) * np.linspace(0.5, 1.5, SECONDS)


def dipping(random):
    start = random.integers(0, 50)
    places = np.arange(SECONDS)
    return steady(random) * np.where((places >= start) & (places < start + 10), 0.6, 1.0)


def study(shapes, *, blocks=8, seed=1, **rest):
    """A run of each environment in each block; `shapes` by environment."""
    random = np.random.default_rng(seed)
    return [
        run_of(environment, block, shape(random), **rest)
        for block in range(1, blocks + 1)
        for environment, shape in shapes.items()
    ]


def warnings_of(shapes, **rest):
    (found,) = compare_study(make_plan(blocks=8), study(shapes, **rest))
    return [warning for warning in found.warnings if warning.code == "not_steady"]


# ------------------------------------------------------------------------------------------------ seconds


@pytest.mark.parametrize("values", [[0.0] * 60, [math.nan] * 60, [math.inf] + [1.0] * 59])
def test_seconds_that_are_no_numbers_or_nothing_at_all_are_no_seconds(values):
    run = replace(make_run(BASE, 1), series=(Series(metric="tps", times=range(1, 61), values=values),))
    assert seconds_of(run).size == 0
    assert opening_of(run) is None


def test_a_report_that_came_late_stands_for_all_its_seconds():
    series = Series(metric="tps", times=(1.0, 2.0, 5.0, 6.0), values=(10.0, 20.0, 30.0, 40.0))
    run = replace(make_run(BASE, 1), series=(series,))
    assert seconds_of(run).tolist() == [10, 20, 30, 30, 30, 40]


def test_the_opening_is_the_first_fifth_against_the_rest():
    assert opening_of(run_of(BASE, 1, [50.0] * 12 + [100.0] * 48)) == pytest.approx(-0.5)
    assert opening_of(run_of(BASE, 1, [100.0] * 12 + [0.0] * 48)) is None
    assert opening_of(run_of(BASE, 1, [100.0] * 11)) == 0


def test_runs_in_slices_and_short_ones_have_no_opening():
    values = warming(np.random.default_rng(2))
    assert opening_of(run_of(BASE, 1, values, together="t1")) is None
    assert opening_of(run_of(BASE, 1, values[:10])) is None
    assert opening_of(make_run(BASE, 2, tps=1.0)) is None


# ------------------------------------------------------------------------------------------------ the warning


@pytest.mark.parametrize("shape", [warming, climbing])
def test_a_warm_up_of_one_environment_is_told_with_what_helps(shape):
    (doubt,) = warnings_of({BASE: steady, OTHER: shape})
    assert (doubt.environment, doubt.seconds) == (OTHER, SECONDS)
    assert doubt.opening < 0


def test_a_warm_up_of_both_is_told_of_both():
    assert len(warnings_of({BASE: warming, OTHER: warming})) == 2


@pytest.mark.parametrize("shape", [steady, dipping, lambda random: warming(random, by=0.02)])
def test_steady_runs_and_dips_anywhere_in_a_run_are_no_warm_up(shape):
    assert not warnings_of({BASE: steady, OTHER: shape})


def test_few_runs_and_invalid_ones_say_nothing():
    assert not warnings_of({BASE: steady, OTHER: warming}, blocks=5)
    assert not warnings_of({BASE: warming, OTHER: warming}, validity=Validity.INVALID)


def test_steady_noise_is_seldom_warned_of():
    found = [warnings_of({BASE: steady, OTHER: steady}, seed=seed) for seed in range(100)]
    assert sum(map(bool, found)) <= 2


def test_the_verdict_is_that_of_whole_runs():
    """As latency, CPU and the throughputs in tables are."""
    plan, runs = make_plan(blocks=8), study({BASE: steady, OTHER: warming})
    (found,) = compare_study(plan, runs, metrics=())
    (bare,) = compare_study(plan, [replace(run, series=()) for run in runs], metrics=())
    assert (found.verdict, found.effect, found.interval) == (bare.verdict, bare.effect, bare.interval)
    assert "not_steady" in codes(found)
