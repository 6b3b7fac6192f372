"""The shift function: each percentile of latency against the baseline, block by block."""

import math
from dataclasses import replace

import pytest

from pgstrata.compare import SECONDARY_METRICS, compare_study, find_shifts, threshold_of
from pgstrata.compare.pairing.arms import sort_runs
from pgstrata.compare.pairing.pairs import pair_all
from pgstrata.compare.verdicts.judging import ask, judge_each
from pgstrata.model.answer import Verdict
from pgstrata.model.metrics import LATENCY_QUANTILES, METRICS
from pgstrata.model.runs import RunStatus
from pgstrata.model.thresholds import OWN_THRESHOLDS
from pgstrata.stats.rule import estimate_many
from studies import BASE, CELL, NOISE, OTHER, cell_of, make_plan, make_run


def latencies(environment, block, effects, **rest):
    """A run whose percentiles are those of the baseline, times an effect of each."""
    noise = math.exp(NOISE[(block + len(environment)) % len(NOISE)] / 4)
    values = {name: 0.001 * (1 + q) * effects.get(name, 1.0) * noise for name, q in LATENCY_QUANTILES.items()}
    return make_run(environment, block, tps=1000.0, **{**values, **rest})


def measure(effects, blocks=12):
    return [
        latencies(name, block, effects if name == OTHER else {})
        for block in range(1, blocks + 1)
        for name in (BASE, OTHER)
    ]


def test_every_percentile_is_compared_from_the_lowest_to_the_highest():
    shifts = find_shifts(make_plan(), measure({"latency_p99": 1.4, "latency_p10": 0.9}))
    assert [item.quantile for item in shifts] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]
    assert {(item.environment, item.cell) for item in shifts} == {(OTHER, CELL)}


def test_a_tail_can_worsen_while_the_fast_end_improves():
    shifts = {item.metric: item for item in find_shifts(make_plan(), measure({"latency_p99": 1.4, "latency_p10": 0.9}))}
    low, middle, high = shifts["latency_p10"], shifts["latency_p60"], shifts["latency_p99"]
    assert (low.verdict, middle.verdict, high.verdict) == (Verdict.BETTER, Verdict.EQUIVALENT, Verdict.WORSE)
    assert (low.effect, high.effect) == pytest.approx((0.9, 1.4), rel=0.01)
    assert high.interval.low < 1.4 < high.interval.high
    assert high.value / high.baseline_value == pytest.approx(1.4, rel=0.01)


def test_each_has_its_own_threshold_and_the_same_effect_may_matter_in_one_only():
    effects = dict.fromkeys(LATENCY_QUANTILES, 1.08)
    shifts = {item.metric: item for item in find_shifts(make_plan(), measure(effects))}
    assert shifts["latency_p50"].verdict is Verdict.WORSE
    assert shifts["latency_p99"].verdict is Verdict.NEGLIGIBLE
    assert [item.threshold for item in shifts.values()] == sorted(item.threshold for item in shifts.values())


@pytest.mark.parametrize(("given", "tps", "p95"), [(0.15, 0.03, 0.05), (0.03, 0.03, 0.05), (0.1, 0.1, 0.1)])
def test_what_p99_needs_by_itself_is_not_asked_of_other_metrics(given, tps, p95):
    experiment = replace(make_plan().experiment, metric="latency_p99", threshold=given)
    assert [threshold_of(experiment, name) for name in ("latency_p99", "tps", "latency_p95")] == [given, tps, p95]


def test_thresholds_between_the_median_and_p95_follow_the_rareness_of_what_lies_beyond():
    assert OWN_THRESHOLDS.keys() == LATENCY_QUANTILES.keys()
    for name, quantile in LATENCY_QUANTILES.items():
        if quantile <= 0.95:
            share = max(0.0, math.log(0.5 / (1 - quantile)) / math.log(0.5 / 0.05))
            assert OWN_THRESHOLDS[name] == pytest.approx(0.03 + 0.02 * share, abs=0.0005)


def scattered(blocks):
    """Runs whose percentiles differ by 20 %, more in some blocks than in others."""
    return [
        run
        for block in range(1, blocks + 1)
        for run in (
            latencies(BASE, block, {}),
            latencies(OTHER, block, dict.fromkeys(LATENCY_QUANTILES, 1.2 * math.exp(0.01 * (block * 5 % 7)))),
        )
    ]


def test_the_band_holds_for_all_percentiles_and_lies_around_each_interval_of_one_alone():
    plan, runs = make_plan(blocks=14), scattered(14)
    shifts = {item.metric: item for item in find_shifts(plan, runs)}
    assert [item.level for item in shifts.values()] == [pytest.approx(11 * 0.0025)] * 11
    alone = judge_each(pair_all(sort_runs(runs, frozenset(shifts)), [ask(plan, name) for name in shifts]))
    for judged in alone:
        band = shifts[judged.pairing.metric]
        (own,) = estimate_many([judged.pairing.sample])
        assert band.effect == pytest.approx(math.exp(-own.centre))
        assert band.interval.low < math.exp(-own.interval.high)
        assert band.interval.high > math.exp(-own.interval.low)


def test_a_band_over_fewer_percentiles_is_narrower_and_has_all_blocks():
    three = {"latency_p50", "latency_p95", "latency_p99"}
    runs = scattered(12)
    few = [replace(run, measurements=tuple(item for item in run.measurements if item.metric in three)) for run in runs]
    whole = {item.metric: item for item in find_shifts(make_plan(), runs)}["latency_p95"]
    part = {item.metric: item for item in find_shifts(make_plan(), few)}["latency_p95"]
    assert part.level == pytest.approx(0.03)
    assert (part.blocks, whole.blocks) == (12, 12)
    assert part.interval.high - part.interval.low < whole.interval.high - whole.interval.low


def test_they_are_no_secondary_comparisons():
    metrics = {item.metric for item in compare_study(make_plan(), measure({}))}
    assert metrics & LATENCY_QUANTILES.keys() == {"latency_p50", "latency_p95", "latency_p99"}
    assert set(SECONDARY_METRICS) <= METRICS.keys()


def test_a_study_without_the_new_percentiles_shows_those_that_it_has():
    old = {"latency_p50", "latency_p95", "latency_p99"}
    runs = [
        replace(run, measurements=tuple(item for item in run.measurements if item.metric in old)) for run in measure({})
    ]
    assert {item.metric for item in find_shifts(make_plan(), runs)} == old
    assert find_shifts(make_plan(), []) == ()


def test_few_blocks_give_an_effect_without_an_interval():
    shift = find_shifts(make_plan(), measure({"latency_p10": 0.9}, blocks=3))[0]
    assert (shift.verdict, shift.interval, shift.blocks) == (Verdict.INSUFFICIENT, None, 3)
    assert shift.effect == pytest.approx(0.9, rel=0.01)


def test_nothing_is_estimated_of_what_collapsed():
    runs = [
        run if run.environment == BASE or run.block == 1 else replace(run, status=RunStatus.COLLAPSED, measurements=())
        for run in measure({})
    ]
    assert {(item.verdict, item.effect, item.interval) for item in find_shifts(make_plan(), runs)} == {
        (Verdict.COLLAPSED, None, None)
    }


def test_cells_stand_apart():
    plan = make_plan(clients=(1, 4))
    runs = [
        latencies(name, block, {"latency_p90": factor} if name == OTHER else {}, cell=cell_of(clients))
        for clients, factor in ((1, 1.3), (4, 0.7))
        for block in range(1, 13)
        for name in (BASE, OTHER)
    ]
    found = {item.cell: item.verdict for item in find_shifts(plan, runs) if item.metric == "latency_p90"}
    assert found == {cell_of(1): Verdict.WORSE, cell_of(4): Verdict.BETTER}
