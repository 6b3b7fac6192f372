"""What looks wrong is measured again, and judged on the new data alone."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.compare.progress import open_pairs
from pgstrata.compare.repeats import find_anomalies, find_curves, wanted_pairs
from pgstrata.compare.study import compare_study
from pgstrata.model.anomaly import AnomalyKind, Repeat
from pgstrata.model.experiment import Interleave
from pgstrata.model.metrics import Measurement
from pgstrata.model.plan import Design
from pgstrata.model.runs import RunStatus, Validity
from studies import BASE, CELL, OTHER, cell_of, make_environment, make_plan, simulate

CLIENTS = (1, 2, 4, 8, 16, 32)
FIRST = range(1, 8)
NEW = range(8, 15)
# OTHER is far ahead everywhere: after seven blocks all is decided.
AHEAD = {OTHER: 0.3}


def curve_plan(**rest):
    return make_plan(clients=CLIENTS, blocks=24, **rest)


def dent(runs, *, blocks, environment=OTHER, clients=8, size=-0.2):
    """The runs, some of them off by so much (log units)."""
    return [
        replace(run, measurements=tuple(Measurement(metric=m.metric, value=m.value * math.exp(size))
                                        for m in run.measurements))
        if (run.environment, run.cell) == (environment, cell_of(clients)) and run.block in blocks
        else run
        for run in runs
    ]  # fmt: skip


def measure(plan, drawn):
    """Runs as the loop makes them: each block holds what is wanted, and nothing else."""
    made = []
    for block in plan.blocks:
        wanted = wanted_pairs(plan, made, block.number)
        made += [run for run in drawn if run.block == block.number and (run.environment, run.cell) in wanted]
    return made


def pairs_of(made, number):
    return frozenset((run.environment, run.cell) for run in made if run.block == number)


def kinks(plan, made):
    return [one for one in find_anomalies(plan, made) if one.kind is AnomalyKind.KINK]


def on_curve(*names):
    return frozenset((name, cell_of(c)) for name in names for c in CLIENTS)


# ------------------------------------------------------------------------------------------------ kinks


def test_a_kink_is_measured_again_in_seven_new_blocks_and_confirmed_if_it_stays():
    plan = curve_plan()
    made = measure(plan, dent(simulate(plan, AHEAD, sd=0.005, drift=0.0), blocks=range(1, 25)))
    assert max(run.block for run in made) == NEW[-1]
    assert all(pairs_of(made, number) == on_curve(OTHER) for number in NEW)
    (kink,) = kinks(plan, made)
    assert (kink.environment, kink.cell, kink.outcome) == (OTHER, cell_of(8), Repeat.CONFIRMED)
    assert (kink.blocks, kink.new_blocks, kink.asked) == (tuple(FIRST), tuple(NEW), 7)
    assert kink.effect == pytest.approx(math.exp(-0.2), abs=0.03)
    assert kink.again == pytest.approx(math.exp(-0.2), abs=0.03)


def test_a_kink_that_is_gone_in_the_new_blocks_was_a_transient():
    plan = curve_plan()
    made = measure(plan, dent(simulate(plan, AHEAD, sd=0.005, drift=0.0), blocks=FIRST))
    assert max(run.block for run in made) == NEW[-1]
    (kink,) = kinks(plan, made)
    assert (kink.outcome, kink.new_blocks) == (Repeat.TRANSIENT, tuple(NEW))


def test_a_smooth_curve_costs_no_block():
    plan = curve_plan()
    made = measure(plan, simulate(plan, AHEAD, sd=0.005, drift=0.0))
    assert max(run.block for run in made) == FIRST[-1]
    assert find_anomalies(plan, made) == ()


def test_the_verdict_that_was_decided_stays_whatever_the_new_blocks_say():
    plan = curve_plan()
    drawn = dent(simulate(plan, AHEAD, sd=0.005, drift=0.0), blocks=range(1, 25))
    made = measure(plan, dent(drawn, blocks=NEW, clients=16, size=-3.0))
    before = compare_study(plan, [run for run in made if run.block in FIRST], metrics=())
    after = compare_study(plan, made, metrics=())
    shown = [[(one.verdict, one.effect, one.interval, one.decided_at) for one in found] for found in (before, after)]
    assert shown[0] == shown[1]


def test_a_kink_of_the_baseline_waits_until_nobody_needs_the_baseline():
    plan = make_plan([make_environment(name) for name in (BASE, OTHER, "pg17")], clients=CLIENTS, blocks=24)
    drawn = simulate(plan, {OTHER: 0.3, "pg17": 0.3}, sd=0.005, drift=0.0)
    made = measure(plan, dent(drawn, blocks=range(1, 25), environment=BASE))
    (kink,) = kinks(plan, made)
    assert (kink.environment, kink.outcome) == (BASE, Repeat.CONFIRMED)
    assert all(pairs_of(made, number) == on_curve(BASE) for number in kink.new_blocks)


def test_a_kink_is_measured_again_beside_what_is_still_open():
    plan = make_plan([make_environment(name) for name in (BASE, OTHER, "pg17")], clients=CLIENTS, blocks=24)
    drawn = simulate(plan, {OTHER: 0.4, "pg17": 0.02}, sd=0.03, drift=0.0)
    made = measure(plan, dent(drawn, blocks=range(1, 25)))
    (kink,) = kinks(plan, made)
    assert (kink.environment, kink.outcome) == (OTHER, Repeat.CONFIRMED)
    beside = [number for number in kink.new_blocks if ("pg17", cell_of(1)) in pairs_of(made, number)]
    assert beside
    assert all(on_curve(OTHER, BASE, "pg17") == pairs_of(made, number) for number in beside[:1])


@pytest.mark.parametrize("environment", [BASE, OTHER])
def test_in_slices_somebody_takes_turns_in_the_new_blocks_too(environment):
    plan = curve_plan()
    designs = tuple(
        Design(cell=cell.identity, interleave=Interleave.SLICES, reason="", slice_seconds=0.5, rounds=8)
        for cell in plan.experiment.cells
    )
    drawn = dent(simulate(plan, AHEAD, sd=0.005, drift=0.0), blocks=range(1, 25), environment=environment)
    made = measure(replace(plan, designs=designs), drawn)
    assert all(pairs_of(made, number) == on_curve(BASE, OTHER) for number in NEW)


def test_a_new_block_with_a_gap_is_not_replaced_and_leaves_a_kink_undecided():
    plan = curve_plan()
    drawn = dent(simulate(plan, AHEAD, sd=0.005, drift=0.0), blocks=range(1, 25))
    spoilt = [
        replace(run, validity=Validity.INVALID)
        if (run.environment, run.cell, run.block) == (OTHER, cell_of(2), 10)
        else run
        for run in drawn
    ]
    made = measure(plan, spoilt)
    assert max(run.block for run in made) == NEW[-1]
    (kink,) = kinks(plan, made)
    assert (kink.outcome, len(kink.new_blocks)) == (Repeat.UNDECIDED, 6)


@pytest.mark.parametrize("last", [7, 10])
def test_where_the_budget_ends_before_the_kink_is_undecided(last):
    plan = curve_plan()
    made = measure(plan, dent(simulate(plan, AHEAD, sd=0.005, drift=0.0), blocks=range(1, 25)))
    (kink,) = kinks(plan, [run for run in made if run.block <= last])
    assert (kink.outcome, len(kink.new_blocks)) == (Repeat.UNDECIDED, last - 7)


def test_where_the_planned_blocks_end_before_the_kink_is_undecided():
    plan = make_plan(clients=CLIENTS, blocks=7)
    made = measure(plan, dent(simulate(plan, AHEAD, sd=0.005, drift=0.0), blocks=range(1, 8)))
    (kink,) = kinks(plan, made)
    assert (kink.outcome, kink.new_blocks, kink.again) == (Repeat.UNDECIDED, (), None)


def test_a_point_that_collapsed_is_no_part_of_the_curve():
    plan = curve_plan()
    drawn = [
        replace(run, status=RunStatus.COLLAPSED) if (run.environment, run.cell) == (OTHER, cell_of(32)) else run
        for run in dent(simulate(plan, AHEAD, sd=0.005, drift=0.0), blocks=range(1, 25))
    ]
    made = measure(plan, drawn)
    (kink,) = kinks(plan, made)
    assert kink.outcome is Repeat.CONFIRMED
    assert all(pairs_of(made, number) == on_curve(OTHER) - {(OTHER, cell_of(32))} for number in kink.new_blocks)


def test_a_curve_has_at_least_five_numbers_of_clients_and_nothing_else_that_varies():
    assert find_curves(make_plan(clients=(1, 2, 4, 8)).experiment) == ()
    experiment = make_plan(clients=(8, 4, 2, 1, 16)).experiment
    mixed = replace(experiment, cells=(*experiment.cells, replace(experiment.cells[0], scale=7)))
    (curve,) = find_curves(mixed)
    assert [cell.clients for cell in curve] == [1, 2, 4, 8, 16]


# ------------------------------------------------------------------------------------------------ runs


def strays(plan, made):
    return [one for one in find_anomalies(plan, made) if one.kind is AnomalyKind.RUN]


@pytest.mark.parametrize(("again", "outcome"), [((7,), Repeat.TRANSIENT), ((7, 8), Repeat.CONFIRMED)])
def test_a_run_that_strays_in_the_last_block_takes_one_block_more(again, outcome):
    plan = make_plan(blocks=24)
    made = measure(plan, dent(simulate(plan, AHEAD, sd=0.005, drift=0.0), blocks=again, clients=4))
    assert pairs_of(made, 8) == {(OTHER, CELL)}
    assert not pairs_of(made, 9)
    (stray,) = strays(plan, made)
    assert (stray.environment, stray.cell, stray.blocks, stray.new_blocks) == (OTHER, CELL, (7,), (8,))
    assert stray.outcome is outcome
    assert stray.effect == pytest.approx(math.exp(-0.2), abs=0.03)


def test_a_run_that_strays_earlier_is_answered_by_the_next_block_and_costs_none():
    plan = make_plan(blocks=24)
    made = measure(plan, dent(simulate(plan, AHEAD, sd=0.005, drift=0.0), blocks=(3,), clients=4))
    assert max(run.block for run in made) == 7
    (stray,) = strays(plan, made)
    assert (stray.blocks, stray.new_blocks, stray.outcome) == ((3,), (4,), Repeat.TRANSIENT)


def test_a_run_that_strays_in_the_last_planned_block_is_undecided():
    plan = make_plan(blocks=7)
    made = measure(plan, dent(simulate(plan, AHEAD, sd=0.005, drift=0.0), blocks=(7,), clients=4))
    (stray,) = strays(plan, made)
    assert (stray.new_blocks, stray.outcome, stray.again) == ((), Repeat.UNDECIDED, None)


def test_runs_that_wander_with_the_machine_do_not_stray():
    plan = make_plan(blocks=24, floors={CELL: 0.005})
    made = measure(plan, simulate(plan, sd=0.005, drift=0.1))
    (found,) = compare_study(plan, made, metrics=())
    assert max(run.block for run in made) == found.decided_at
    assert strays(plan, made) == []


# ------------------------------------------------------------------------------------------ it never changes


studies = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10_000),
        "sd": st.sampled_from([0.005, 0.03]),
        "effect": st.sampled_from([0.0, 0.05, 0.3]),
        "blocks": st.sampled_from([(), tuple(FIRST), tuple(range(1, 25)), (7,), (8, 9, 10)]),
        "environment": st.sampled_from([BASE, OTHER]),
    }
)


@given(studies, st.randoms(use_true_random=False))
@settings(max_examples=6, deadline=None)
def test_a_resumed_study_asks_for_the_same_blocks(study, random):
    plan = curve_plan()
    drawn = simulate(plan, {OTHER: study["effect"]}, sd=study["sd"], seed=study["seed"], drift=0.02)
    made = measure(plan, dent(drawn, blocks=study["blocks"], environment=study["environment"]))
    for number in range(1, 26):
        half = [run for run in made if run.block < number or (run.block == number and run.environment == BASE)]
        wanted = wanted_pairs(plan, random.sample(half, len(half)), number)
        assert wanted == pairs_of(made, number) or number == 25
        assert open_pairs(plan, made, number) <= wanted


@given(studies)
@settings(max_examples=6, deadline=None)
def test_what_is_measured_again_is_bounded(study):
    plan = curve_plan()
    drawn = simulate(plan, {OTHER: study["effect"]}, sd=study["sd"], seed=study["seed"], drift=0.02)
    made = measure(plan, dent(drawn, blocks=study["blocks"], environment=study["environment"]))
    extra = [number for number in range(1, 25) if pairs_of(made, number) - open_pairs(plan, made, number)]
    assert len(extra) <= 2 * 7
    for one in find_anomalies(plan, made):
        assert len(one.new_blocks) <= one.asked
        assert (one.again is None) == (not one.new_blocks)
