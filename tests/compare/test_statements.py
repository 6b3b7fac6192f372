"""Statements of cells with a profile: each has its verdict, and their number is allowed for."""

import math
from dataclasses import replace

import numpy as np
import pytest

from pgstrata.compare import open_pairs
from pgstrata.compare.statements import LEAST_SECONDS, find_statement_shifts
from pgstrata.model.answer import Verdict
from pgstrata.model.runs import RunStatus, StatementLatency
from studies import BASE, CELL, OTHER, make_plan, simulate

PLAIN = "SELECT a FROM t;"
NAMED = "/* monthly report */ SELECT b FROM t;"
BLOCKS = 24


def with_statements(plan, effects, *, blocks=BLOCKS, noise=0.01, tps=0.0):
    """Runs with statements of 10 ms, times an effect in the other environment."""
    rng = np.random.default_rng(7)
    runs = [run for run in simulate(plan, {OTHER: tps}) if run.block <= blocks]
    return [
        replace(
            run,
            statements=tuple(
                StatementLatency(
                    text=text, seconds=seconds * (effect if run.environment == OTHER else 1) * math.exp(rng.normal(0, noise))
                )
                for text, seconds, effect in effects
            ),
        )
        for run in runs
    ]  # fmt: skip


def find(effects, **rest):
    plan = make_plan(blocks=BLOCKS)
    return find_statement_shifts(plan, with_statements(plan, effects, **rest))


def test_a_study_without_a_profile_has_no_statements():
    plan = make_plan(blocks=BLOCKS)
    assert find_statement_shifts(plan, simulate(plan, {})) == ()


def test_each_statement_has_its_own_verdict():
    slow, same, fast = find([(PLAIN, 0.01, 1.2), ("SELECT 1;", 0.01, 1.0), (NAMED, 0.01, 0.8)])
    assert [each.statement for each in (slow, same, fast)] == [PLAIN, "SELECT 1;", NAMED]
    assert (slow.verdict, same.verdict, fast.verdict) == (Verdict.WORSE, Verdict.EQUIVALENT, Verdict.BETTER)
    assert (slow.environment, slow.cell) == (OTHER, CELL)
    assert (slow.effect, fast.effect) == pytest.approx((1.2, 0.8), rel=0.02)
    assert slow.interval.low < 1.2 < slow.interval.high
    assert slow.value / slow.baseline_value == pytest.approx(1.2, rel=0.02)


def test_many_statements_share_the_error_probability():
    (alone,) = find([(PLAIN, 0.01, 1.2)])
    many = find([(PLAIN, 0.01, 1.2), *((f"SELECT {n};", 0.01, 1.0) for n in range(20))])
    assert many[0].level < alone.level / 10
    assert alone.decided_at < many[0].decided_at
    assert many[0].verdict is Verdict.WORSE


def test_equal_statements_are_hardly_ever_called_different_however_many_there_are():
    plan, wrong = make_plan(blocks=BLOCKS), 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        runs = [
            replace(
                run,
                statements=tuple(
                    StatementLatency(text=f"SELECT {n};", seconds=0.01 * math.exp(rng.normal(0, 0.02))) for n in range(10)
                ),
            )
            for run in simulate(plan, {})
        ]  # fmt: skip
        found = {each.verdict for each in find_statement_shifts(plan, runs)}
        wrong += bool(found & {Verdict.BETTER, Verdict.WORSE})
    # 4.5 % of families are allowed to: 7 of 40 or more would come by chance in one of 1000
    assert wrong < 7


def test_a_statement_that_stands_twice_is_two():
    first, second = find([(PLAIN, 0.01, 1.0), (PLAIN, 0.03, 1.3)])
    assert (first.number, second.number) == (0, 1)
    assert (first.verdict, second.verdict) == (Verdict.EQUIVALENT, Verdict.WORSE)


def test_what_takes_less_than_a_driver_can_tell_is_left_out():
    assert find([("\\set aid 1", LEAST_SECONDS / 2, 3.0)]) == ()


def test_statements_of_an_environment_that_collapsed_have_no_effect():
    plan = make_plan(blocks=BLOCKS)
    runs = [
        replace(run, status=RunStatus.COLLAPSED) if run.environment == OTHER and run.block > 4 else run
        for run in with_statements(plan, [(PLAIN, 0.01, 1.2)])
    ]
    (shift,) = find_statement_shifts(plan, runs)
    assert shift.verdict is Verdict.COLLAPSED
    assert shift.effect is None


def test_a_statement_with_a_name_is_measured_until_it_is_decided():
    plan = make_plan(blocks=60)
    decided = 10
    noisy = with_statements(plan, [(NAMED, 0.01, 1.0)], blocks=decided, noise=0.1, tps=0.3)
    unnamed = with_statements(plan, [(PLAIN, 0.01, 1.0)], blocks=decided, noise=0.1, tps=0.3)
    assert open_pairs(plan, unnamed, decided + 1) == frozenset()
    assert open_pairs(plan, noisy, decided + 1) == {(BASE, CELL), (OTHER, CELL)}
