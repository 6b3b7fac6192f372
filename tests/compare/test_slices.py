"""Runs in slices: one difference of a visit from its rounds, and runs that were measured apart."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pgstrata.compare import compare_pairs, compare_study
from pgstrata.compare.pairing.arms import sort_runs
from pgstrata.compare.pairing.shared_blocks import over_rounds
from pgstrata.model.answer import Verdict
from pgstrata.model.doubts import CountedDoubt
from pgstrata.model.metrics import ROUND_TPS, Series
from studies import BASE, OTHER, codes, make_plan, make_run, simulate_slices


def visit(block, other, base, **rest):
    """Both environments of a block, with tps by round."""
    return [
        make_run(OTHER, block, together=f"t{block}", rounds=other, tps=1.0, **rest),
        make_run(BASE, block, together=f"t{block}", rounds=base, tps=1.0, **rest),
    ]


def only(runs, blocks=1):
    (found,) = compare_study(make_plan(blocks=blocks), runs, metrics=())
    return found


def test_a_visit_has_the_median_of_its_round_log_ratios_and_not_the_ratio_of_medians():
    other, base = (110.0, 220.0, 300.0), (100.0, 200.0, 900.0)
    assert only(visit(1, other, base)).effect == pytest.approx(1.1)
    assert np.median(other) / np.median(base) == pytest.approx(1.1)
    other, base = (110.0, 220.0, 330.0, 50.0, 60.0), (100.0, 200.0, 300.0, 400.0, 410.0)
    assert only(visit(1, other, base)).effect == pytest.approx(1.1)
    assert np.median(other) / np.median(base) < 0.4


def test_an_even_number_of_rounds_has_the_mean_of_the_two_in_the_middle():
    effect = only(visit(1, (110.0, 120.0, 90.0, 500.0), (100.0,) * 4)).effect
    assert effect == pytest.approx(math.sqrt(1.1 * 1.2))


def test_rounds_without_transactions_in_one_environment_are_left_out():
    found = only(visit(1, (110.0, 0.0, math.nan, 110.0, 700.0), (100.0, 100.0, 100.0, 100.0, 0.0)))
    assert found.effect == pytest.approx(1.1)


@pytest.mark.parametrize("rounds", [(110.0, 0.0), (110.0,), ()])
def test_a_visit_with_fewer_than_two_rounds_has_no_difference(rounds):
    runs = visit(1, rounds, (100.0,) * len(rounds))
    assert (only(runs).blocks, only(runs).effect) == (0, None)


def test_visits_that_do_not_hold_the_same_rounds_have_no_difference():
    assert only(visit(1, (110.0,) * 3, (100.0,) * 4)).blocks == 0


def test_visits_may_differ_in_their_number_of_rounds():
    runs = [run for block in range(1, 9) for run in visit(block, (110.0,) * (block + 1), (100.0,) * (block + 1))]
    found = only(runs, blocks=8)
    assert (found.verdict, found.blocks) == (Verdict.BETTER, 7)


def test_runs_that_took_turns_with_others_are_no_pair_and_that_is_said():
    plan = make_plan(blocks=9)
    (found,) = compare_study(plan, simulate_slices(plan, {OTHER: 0.2}, apart={2, 5}), metrics=())
    assert (found.verdict, found.blocks) == (Verdict.BETTER, 7)
    assert found.warnings == (CountedDoubt(code="measured_apart", number=2, of=9),)


def test_a_sliced_run_and_one_that_was_alone_are_no_pair():
    sliced, _ = visit(1, (110.0, 110.0), (100.0, 100.0))
    found = only([sliced, make_run(BASE, 1, tps=100.0)])
    assert (found.blocks, codes(found)[-1]) == (0, "measured_apart")


def test_other_metrics_of_sliced_runs_pair_by_the_value_of_the_run():
    runs = [run for block in range(1, 8) for run in visit(block, (110.0,) * 4, (100.0,) * 4, server_cpu_per_tx=0.001)]
    found = compare_study(make_plan(blocks=7), runs)
    assert [(one.metric, one.verdict) for one in found] == [
        ("tps", Verdict.BETTER),
        ("server_cpu_per_tx", Verdict.EQUIVALENT),
    ]


def test_other_metrics_of_runs_that_were_measured_apart_are_no_pair_either():
    plan = make_plan(blocks=3, metric="server_cpu_per_tx")
    runs = [
        replace(run, together=f"{run.together}{run.environment}")
        for block in range(1, 4)
        for run in visit(block, (1.0, 1.0), (1.0, 1.0), server_cpu_per_tx=0.001)
    ]
    (found, _) = compare_study(plan, runs)
    assert found.blocks == 0


def test_the_shown_values_are_those_of_the_runs_and_the_effect_is_that_of_the_rounds():
    found = only(visit(1, (110.0, 110.0), (100.0, 100.0)))
    assert (found.value, found.baseline_value) == (1.0, 1.0)
    assert found.effect == pytest.approx(1.1)


def test_visits_without_a_throughput_of_their_own_count_and_the_shown_values_are_those_of_the_others():
    visits = [visit(block, (110.0, 110.0), (100.0, 100.0)) for block in range(1, 9)]
    bare = [[replace(run, measurements=()) if run.block > 3 else run for run in runs] for runs in visits]
    found = only([run for runs in bare for run in runs], blocks=8)
    assert (found.verdict, found.blocks) == (Verdict.BETTER, 7)
    assert (found.value, found.baseline_value) == (1.0, 1.0)
    assert found.effect == pytest.approx(1.1)
    arms = sort_runs([run for runs in bare for run in runs], frozenset({"tps"}))
    assert [arms[OTHER, bare[0][0].cell].levels("tps")[block] for block in (1, 8)] == [110.0, 110.0]
    nothing = only([replace(run, measurements=()) for runs in visits for run in runs], blocks=8)
    assert (nothing.verdict, nothing.value) == (Verdict.BETTER, None)


def test_runs_that_grow_are_sorted_anew_and_those_of_a_study_once():
    runs = [run for block in (1, 2) for run in visit(block, (110.0, 110.0), (100.0, 100.0))]
    place, tps = (OTHER, runs[0].cell), frozenset({"tps"})
    assert sort_runs(runs[:2], tps)[place].made == 1
    growing = runs[:2]
    sort_runs(growing, tps)
    growing += runs[2:]
    assert sort_runs(growing, tps)[place].made == 2
    study = tuple(runs)
    assert sort_runs(study, tps) is sort_runs(study, tps)
    assert sort_runs(tuple(runs[:2]), tps)[place].made == 1


def test_runs_that_were_sorted_for_more_metrics_serve_for_fewer_with_throughput_or_without():
    runs = tuple(run for block in (1, 2) for run in visit(block, (110.0, 110.0), (100.0, 100.0)))
    place, more = (OTHER, runs[0].cell), frozenset({"tps", "latency_p50"})
    arms = sort_runs(runs, more)
    assert sort_runs(runs, frozenset({"tps"})) is arms
    without = sort_runs(runs, frozenset({"latency_p50"}))
    assert not without[place].rounds
    assert sort_runs(runs, more)[place].rounds.keys() == {1, 2}


def test_comparing_changes_nothing_in_runs_that_were_sorted_and_are_shared():
    bare = [replace(run, measurements=()) for block in (1, 2) for run in visit(block, (110.0, 110.0), (100.0, 100.0))]
    runs = tuple(replace(run, together="") if run.block == 2 else run for run in bare)
    arms = sort_runs(runs, frozenset({"tps"}))
    before = repr(arms)
    (found,) = compare_pairs(make_plan(blocks=2), runs)
    assert found.blocks == 1
    assert sort_runs(runs, frozenset({"tps"})) is arms
    assert repr(arms) == before


def test_series_in_single_precision_give_the_same_difference():
    plan = make_plan(blocks=9)
    runs = simulate_slices(plan, {OTHER: 0.03})

    def stored(run):
        values = tuple(np.array(run.rounds(), dtype=np.float32).astype(float).tolist())
        return replace(run, series=(Series(metric=ROUND_TPS, times=run.series[0].times, values=values),))

    assert compare_study(plan, [stored(run) for run in runs]) == compare_study(plan, runs)


@given(arrays(np.float64, (3, 5), elements=st.floats(-1, 1) | st.just(math.nan)))
def test_the_difference_of_a_visit_is_the_median_of_its_rounds_and_turns_with_them(d):
    found = over_rounds(d, np.full(3, 2.0))
    for row, value in zip(d, found, strict=True):
        known = row[~np.isnan(row)]
        assert value == np.median(known) if known.size > 1 else math.isnan(value)
    assert np.array_equal(over_rounds(-d, np.full(3, 2.0)), -found, equal_nan=True)
