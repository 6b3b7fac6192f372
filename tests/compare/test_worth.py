"""Transactions for the money: a throughput that is shifted by a known ratio of prices."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.compare import compare_study
from pgstrata.compare.sustained import find_sustained_rates
from pgstrata.compare.worth import find_worth
from pgstrata.model.answer import Verdict
from pgstrata.model.objective import Objective
from pgstrata.model.price import Price
from pgstrata.stats.medians import median_interval
from pgstrata.stats.peaks import CHOOSING, peak_values
from studies import BASE, CELL, OTHER, cell_of, make_plan, make_run, simulate


def price(amount):
    return Price(amount=amount, currency="USD", as_of="2021-01-15")


def study_of(effect, *, base=1.808, other=1.4464, clients=(4,), unpriced=()):
    plan = make_plan(blocks=24, clients=clients)
    prices = {name: price(amount) for name, amount in ((BASE, base), (OTHER, other)) if name not in unpriced}
    plan = replace(plan, experiment=replace(plan.experiment, prices=prices))
    return SimpleNamespace(plan=plan, runs=tuple(simulate(plan, {OTHER: effect})))


def test_the_effect_and_its_interval_are_those_of_throughput_divided_by_the_ratio_of_prices():
    study = study_of(math.log(0.9))
    (compared,) = [one for one in compare_study(study.plan, study.runs) if one.metric == "tps"]
    (found,) = find_worth(study).findings
    assert found.price_ratio == pytest.approx(0.8)
    assert found.effect == pytest.approx(compared.effect / 0.8)
    assert found.interval.low == pytest.approx(compared.interval.low / 0.8)
    assert found.interval.high == pytest.approx(compared.interval.high / 0.8)
    assert (compared.verdict, found.verdict) == (Verdict.WORSE, Verdict.BETTER)


def test_a_machine_that_does_less_in_proportion_to_its_price_gives_as_much_for_the_money():
    (found,) = find_worth(study_of(math.log(0.8))).findings
    assert found.verdict is Verdict.EQUIVALENT


def test_a_million_transactions_cost_the_price_by_the_throughput():
    costs = {cost.environment: cost for cost in find_worth(study_of(0.0)).costs}
    cost = costs[BASE]
    assert cost.per_unit(1000) == pytest.approx(3_600_000 / 1.808)
    assert cost.of_a_million(1000) == pytest.approx(1.808 / 3.6)
    assert cost.interval[0] < cost.rate < cost.interval[1]
    assert (cost.blocks, cost.cells) == (24, (CELL,))


def test_what_costs_more_and_does_less_is_beaten():
    costs = {cost.environment: cost.dominated_by for cost in find_worth(study_of(math.log(2))).costs}
    assert costs == {BASE: OTHER, OTHER: ""}
    costs = {cost.environment: cost.dominated_by for cost in find_worth(study_of(-math.log(2))).costs}
    assert costs == {BASE: "", OTHER: ""}


def test_what_may_be_as_fast_is_not_said_to_be_beaten():
    prices = {"base": 1.808, "other": 1.808}
    assert {cost.dominated_by for cost in find_worth(study_of(0.0, **prices)).costs} == {""}
    # as fast for less
    costs = {cost.environment: cost.dominated_by for cost in find_worth(study_of(0.0)).costs}
    assert costs == {BASE: OTHER, OTHER: ""}


def test_cells_at_a_fixed_rate_are_left_out():
    study = study_of(0.0, clients=(4, 8))
    cells = study.plan.experiment.cells
    paced = replace(cells[1], rate=100.0)
    plan = replace(study.plan, experiment=replace(study.plan.experiment, cells=(cells[0], paced)))
    worth = find_worth(SimpleNamespace(plan=plan, runs=study.runs))
    assert [finding.cells for finding in worth.findings] == [(CELL,)]
    assert {cost.cells for cost in worth.costs} == {(CELL,)}


def test_the_peak_of_a_flat_curve_is_not_too_high():
    """The largest of four equal values with noise of 3 % would be 3 % too high."""
    random = np.random.default_rng(5)
    noise = random.normal(0, 0.03, (200, 4, 12))
    flat = np.concatenate([peak_values(each) for each in noise])
    steep = np.concatenate([peak_values(each + np.array([[-0.5], [0], [-0.3], [-0.7]])) for each in noise])
    assert abs(flat.mean() - steep.mean()) < 0.004
    assert noise.max(axis=1).mean() > 0.025


def test_the_peak_of_a_block_is_chosen_by_the_blocks_before_it():
    values = np.array([[1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0], [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]])
    assert peak_values(values).tolist() == [2, 2, 2, 2, 9]
    for blocks in range(8):
        assert peak_values(values[:, :blocks]).tolist() == [2, 2, 2, 2, 9][: max(blocks - CHOOSING, 0)]


def test_along_clients_the_peak_of_each_block_is_taken_too():
    study = study_of(math.log(1.2), clients=(4, 8))
    worth = find_worth(study)
    assert [finding.cells for finding in worth.findings] == [
        (cell_of(4),), (cell_of(8),), (cell_of(4), cell_of(8)),
    ]  # fmt: skip
    peak = worth.findings[-1]
    best = [
        max(run.value("tps") for run in study.runs if (run.environment, run.block) == (OTHER, block))
        / max(run.value("tps") for run in study.runs if (run.environment, run.block) == (BASE, block))
        for block in range(1 + CHOOSING, 25)
    ]
    assert min(best) / 0.8 < peak.effect < max(best) / 0.8
    assert peak.verdict is Verdict.BETTER
    assert {cost.blocks for cost in worth.costs if len(cost.cells) > 1} == {24 - CHOOSING}


def test_environments_without_a_price_are_named_and_without_the_baselines_nothing_is_compared():
    worth = find_worth(study_of(0.0, unpriced=(BASE,)))
    assert (worth.findings, worth.unpriced) == ((), (BASE,))
    assert [cost.environment for cost in worth.costs] == [OTHER]
    assert find_worth(study_of(0.0, unpriced=(BASE, OTHER))) is None


def test_with_too_few_blocks_it_is_too_early():
    study = study_of(0.0)
    few = SimpleNamespace(plan=study.plan, runs=tuple(run for run in study.runs if run.block <= 3))
    (found,) = find_worth(few).findings
    assert found.verdict is Verdict.INSUFFICIENT
    assert all(cost.interval is None for cost in find_worth(few).costs)


@given(st.lists(st.floats(1, 1e6), min_size=6, max_size=60, unique=True))
def test_the_interval_of_a_median_reaches_its_confidence_and_none_that_is_narrower_does(values):
    low, high, confidence = median_interval(values)
    ordered, n = sorted(values), len(values)
    place = ordered.index(low)

    def probability(place):
        return 1 - 2 * sum(math.comb(n, each) for each in range(place + 1)) / 2**n

    assert ordered[n - 1 - place] == high
    assert confidence == pytest.approx(probability(place))
    assert confidence >= 0.95 > probability(place + 1)


def test_five_values_have_no_interval_at_95_percent():
    assert median_interval([1, 2, 3, 4, 5]) is None
    assert median_interval([1, 2, 3, 4, 5, 6])[:2] == (1, 6)


def at_objective(effect, *, clients=(4,), blocks=24):
    """Two priced environments with an objective in each cell; throughput is of no use, because searches change it."""
    plan = make_plan(metric="sustained_rate", blocks=blocks, clients=clients)
    cells = tuple(replace(each, objective=Objective(of="p99", limit=0.02)) for each in plan.experiment.cells)
    prices = {BASE: price(1.808), OTHER: price(1.4464)}
    plan = replace(plan, experiment=replace(plan.experiment, cells=cells, prices=prices))
    random = np.random.default_rng(3)
    runs = tuple(
        make_run(
            name,
            block,
            cell=cell.identity,
            tps=float(random.uniform(1, 5000)),
            sustained_rate=1000 * math.exp((effect if name == OTHER else 0) + random.normal(0, 0.01)),
        )
        for block in range(1, blocks + 1)
        for cell in cells
        for name in (BASE, OTHER)
    )
    return SimpleNamespace(plan=plan, runs=runs)


def test_within_an_objective_the_highest_rate_is_what_the_money_buys():
    study = at_objective(math.log(0.9))
    worth = find_worth(study)
    (found,) = worth.findings
    assert (found.metric, found.verdict) == ("sustained_rate", Verdict.BETTER)
    assert found.effect == pytest.approx(0.9 / 0.8, rel=0.01)
    assert found.interval.low < found.effect < found.interval.high
    known = {each.environment: each for each in find_sustained_rates(study)}
    for cost in worth.costs:
        rate = known[cost.environment]
        assert cost.rate == rate.value == pytest.approx(1000 if cost.environment == BASE else 900, rel=0.01)
        # the interval of the rate that all runs together sustain, not that of a median of runs
        assert cost.interval == (rate.interval.low, rate.interval.high)
        assert cost.of_a_million(cost.rate) == pytest.approx(cost.price.amount / cost.rate / 3600 * 1e6)


def test_with_few_runs_within_an_objective_there_is_a_cost_without_an_interval():
    costs = find_worth(at_objective(0.0, blocks=2)).costs
    assert [(cost.blocks, cost.interval) for cost in costs] == [(2, None), (2, None)]
    assert all(cost.rate == pytest.approx(1000, rel=0.05) for cost in costs)
