"""What the rounds of a cell in slices show: visits that drift, how they begin, rounds far off."""

import math
from dataclasses import replace

import numpy as np
import pytest

from pgstrata.compare.rounds import find_rounds
from pgstrata.model.metrics import Measurement, Series
from pgstrata.model.runs import RunStatus, Validity
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study
from studies import BASE, CELL, OTHER, make_environment, make_plan, make_run

NOTHING = Fingerprint(facts={})
ROUNDS = 20


def study_of(runs, environments=None):
    plan = make_plan(environments, blocks=max((run.block for run in runs), default=1))
    return Study(
        name="s", plan=plan, runs=tuple(runs), host=NOTHING, client=NOTHING, environments={}, created="", version="",
    )  # fmt: skip


def sliced(value, *, blocks=12, names=(BASE, OTHER), seed=1, sd=0.01):
    """Runs whose rounds are value(environment, block, round) with noise of their own."""
    random = np.random.default_rng(seed)
    return [
        make_run(
            name,
            block,
            together=f"t{block}",
            rounds=[value(name, block, place) * math.exp(random.normal(0, sd)) for place in range(ROUNDS)],
        )
        for block in range(1, blocks + 1)
        for name in names
    ]


def find(value, **rest):
    return find_rounds(study_of(sliced(value, **rest)), CELL)


def test_a_cell_without_slices_has_no_rounds():
    assert find_rounds(study_of([make_run(BASE, 1, tps=1.0)]), CELL) is None
    assert find_rounds(study_of([]), CELL) is None


def test_where_nothing_moves_visits_are_alike_and_nothing_is_far_off():
    found = find(lambda name, block, place: 1000)
    assert found.drift.together < 1.02
    assert found.drift.trend is None
    assert found.openings == ()
    assert found.far == ()
    assert [visit.block for visit in found.visits] == list(range(1, 13))


def test_a_machine_that_becomes_slower_drifts_in_all_environments_alike():
    found = find(lambda name, block, place: 1000 * 0.98**block)
    assert found.drift.together == pytest.approx(0.98**-11, rel=0.02)
    assert found.drift.own < 1.02
    assert found.drift.trend == pytest.approx(0.98**8, rel=0.02)
    assert find(lambda name, block, place: 1000 * (1.1 if block % 2 else 1.0)).drift.trend is None


def test_an_environment_that_leaves_the_others_shows_in_its_own_share():
    runs = sliced(lambda name, block, place: 1000 * (0.8 if (name, block) == ("c", 7) else 1.0), names=("a", "b", "c"))
    found = find_rounds(study_of(runs, tuple(make_environment(name) for name in "abc")), CELL)
    assert found.drift.own == pytest.approx(1.25, rel=0.03)
    assert found.drift.together < 1.02


def test_the_first_rounds_of_a_visit_are_compared_with_the_rest():
    found = find(lambda name, block, place: 1000 * (0.9 if name == OTHER and place < 2 else 1.0))
    (opening,) = found.openings
    assert (opening.environment, opening.rounds) == (OTHER, 2)
    assert opening.effect == pytest.approx(0.9, rel=0.01)
    assert opening.interval[0] < opening.effect < opening.interval[1] < 1
    assert found.profiles[OTHER].middle[0] == pytest.approx(0.9, rel=0.02)
    assert found.profiles[BASE].middle[0] == pytest.approx(1.0, rel=0.02)
    assert find(lambda name, block, place: 1000 * (0.9 if place < 2 else 1.0), blocks=5).openings == ()


def test_a_round_in_which_one_environment_alone_is_slow_is_far_off_and_one_of_the_machine_is_not():
    def value(name, block, place):
        alone = (name, block, place) == (OTHER, 3, 10)
        return 1000 * (0.5 if alone or (block, place) == (5, 6) else 1.0)

    (far,) = find(value).far
    assert (far.environment, far.place, far.time) == (OTHER, 2, 10)
    assert far.ratio == pytest.approx(0.5, rel=0.05)
    assert far.value == pytest.approx(500, rel=0.05)


def test_excluded_runs_are_there_but_in_no_figure():
    runs = sliced(lambda name, block, place: 1000 * (0.1 if block == 4 else 1.0))
    runs = [replace(run, validity=Validity.INVALID) if run.block == 4 else run for run in runs]
    failed = replace(make_run(OTHER, 6), status=RunStatus.FAILED)
    runs = [failed if (run.block, run.environment) == (6, OTHER) else run for run in runs]
    found = find_rounds(study_of(runs), CELL)
    assert found.drift.together < 1.02
    assert found.visits[3].turns[BASE].validity is Validity.INVALID
    assert len(found.visits[3].turns[BASE].values) == ROUNDS
    assert found.visits[5].turns[OTHER].validity is Validity.INVALID
    assert found.visits[5].turns[OTHER].values == ()
    assert found.medians()[BASE] == pytest.approx(1000, rel=0.01)


def test_rounds_that_are_missing_or_did_nothing_are_left_out():
    runs = sliced(lambda name, block, place: 1000)
    rounds = runs[0].series[0]
    holes = replace(rounds, values=(math.nan, 0.0, *rounds.values[2:]), times=(math.nan, *rounds.times[1:]))
    none = replace(rounds, values=(0.0,) * ROUNDS)
    runs = [replace(runs[0], series=(holes,)), replace(runs[1], series=(none,)), *runs[2:]]
    found = find_rounds(study_of(runs), CELL)
    assert found.far == ()
    assert found.length == ROUNDS - 1
    assert found.profiles[OTHER].visits == 11


def test_events_and_the_load_of_others_come_with_their_visit():
    runs = sliced(lambda name, block, place: 1000, blocks=2)
    event = Series(metric="checkpoint_starts", times=(3.0,), values=(1.0,))
    load = Measurement(metric="neighbour_share", value=0.25)
    runs = [replace(runs[0], series=(*runs[0].series, event), measurements=(load,)), *runs[1:]]
    found = find_rounds(study_of(runs), CELL)
    assert found.visits[0].turns[runs[0].environment].events == {"checkpoint_starts": (3.0,)}
    assert [visit.background for visit in found.visits] == [0.25, None]


def test_a_visit_that_was_begun_twice_is_two_visits():
    runs = sliced(lambda name, block, place: 1000, blocks=2)
    runs = [replace(run, together="again") if (run.block, run.environment) == (2, OTHER) else run for run in runs]
    found = find_rounds(study_of(runs), CELL)
    assert [(visit.block, sorted(visit.turns)) for visit in found.visits] == [
        (1, [BASE, OTHER]), (2, [BASE]), (2, [OTHER])
    ]  # fmt: skip


def test_one_visit_of_one_round_is_no_drift():
    found = find_rounds(study_of([make_run(BASE, 1, together="t", rounds=(100.0,))]), CELL)
    assert found.drift is None
    assert found.length > 0
    assert found.profiles[BASE].middle == (1.0,)
