"""Doubts about first and only values of a table of results."""

import math

import numpy as np
import pytest

from pgstrata.compare.one_look import ImportTerms, decide_import
from pgstrata.model.doubts import ColdStart
from pgstrata.sources.table import parse_table


def write(series, *, blocks=False):
    """Rows of environments (or environment and cell) with their values, one after the other or in blocks."""
    lines = [f"{'block,' if blocks else ''}environment,cell,value"]
    for (name, cell), values in series.items():
        lines += [f"{f'{n},' if blocks else ''}{name},{cell},{value!r}" for n, value in enumerate(values)]
    return "\n".join(lines) + "\n"


def ask(series, *, blocks=False, **terms):
    return decide_import(parse_table(write(series, blocks=blocks), "r.csv"), ImportTerms(baseline="a", **terms))


def noisy(level, n, *, first=1.0, seed=1):
    values = level * np.exp(np.random.default_rng(seed).normal(0, 0.01, n))
    values[0] *= first
    return values.tolist()


def find(answer, code):
    return [doubt for doubt in answer.warnings if doubt.code == code]


def test_an_environment_that_was_measured_once_is_named():
    answer = ask({("a", "c"): noisy(100, 5), ("b", "c"): [110.0], ("d", "c"): noisy(100, 5)})
    assert [doubt.names for doubt in find(answer, "measured_once")] == [("b",)]
    many = ask({("a", "x"): noisy(1, 5), ("b", "x"): [1.1], ("a", "y"): [1.0], ("b", "y"): noisy(1, 4)})
    assert [doubt.names for doubt in find(many, "measured_once")] == [("b on x", "a on y")]
    assert not find(ask({("a", "c"): noisy(100, 5), ("b", "c"): noisy(100, 5)}), "measured_once")


def test_seconds_of_one_run_are_not_told_a_second_time_as_measured_once():
    seconds = np.exp(np.cumsum(np.random.default_rng(2).normal(0, 0.01, 60))).tolist()
    answer = ask({("a", "c"): seconds, ("b", "c"): seconds[::-1]})
    assert find(answer, "dependent_values")
    assert not find(answer, "measured_once")


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_a_first_run_that_began_cold_is_flagged(blocks, lower):
    first = 1.5 if lower else 0.6
    series = {("a", "c"): noisy(100, 7), ("b", "c"): noisy(100, 7, first=first, seed=2)}
    (found,) = find(ask(series, blocks=blocks, lower_is_better=lower), "cold_start")
    assert (found.environments, found.of) == (("b",), 0)
    assert found.change == pytest.approx(first, abs=0.05)


def test_a_first_run_that_is_better_than_the_others_did_not_begin_cold():
    series = {("a", "c"): noisy(100, 7), ("b", "c"): noisy(100, 7, first=1.6)}
    assert not find(ask(series), "cold_start")


def test_three_runs_of_many_queries_show_together_that_the_first_began_cold():
    series = {
        (name, f"q{n}"): noisy(1 + n, 3, first=1.3 if n % 10 else 1.0, seed=n) for n in range(20) for name in "ab"
    }
    (found,) = find(ask(series, lower_is_better=True), "cold_start")
    assert isinstance(found, ColdStart)
    assert (found.environments, found.of) == (("a", "b"), 40)
    assert found.worst >= 36
    assert math.log(found.change) == pytest.approx(math.log(1.3), abs=0.03)
    warm = {key: noisy(1, 3, seed=place) for place, key in enumerate(series)}
    assert not find(ask(warm, lower_is_better=True), "cold_start")
