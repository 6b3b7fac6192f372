"""One warm-up cut for a block: where it is made, where not, and that it makes no difference out of none."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.compare import compare_study, open_pairs
from pgstrata.compare.pairing.arms import sort_runs
from pgstrata.model.answer import Verdict
from pgstrata.model.metrics import Series
from pgstrata.model.observation import SteadyPart
from pgstrata.model.runs import Validity
from pgstrata.sources.runs import whole_runs
from pgstrata.sources.steady import find_steady, row_medians, seconds_of
from studies import BASE, CELL, OTHER, codes, make_plan, make_run

SECONDS = 60


def run_of(environment, block, values, *, factor=1.0, **rest):
    """A run whose series holds those values by second; its own throughput differs from their mean as pgbench's does."""
    series = Series(metric="tps", times=tuple(range(1, len(values) + 1)), values=tuple(values))
    run = make_run(environment, block, tps=float(np.mean(values)) * factor * 1.001, **rest)
    return replace(run, series=(series,))


def steady(random, level=1000.0):
    return level * (1 + 0.03 * random.normal(size=SECONDS))


def warming(random, level=1000.0, *, by=0.5, seconds=10.0):
    return steady(random, level) * (1 - by * np.exp(-np.arange(SECONDS) / seconds))


def study(shapes, *, blocks=8, seed=1):
    """A run of each environment in each block; `shapes` by environment."""
    random = np.random.default_rng(seed)
    return [
        run_of(environment, block, shape(random))
        for block in range(1, blocks + 1)
        for environment, shape in shapes.items()
    ]


def values_of(runs, environment, metric="tps"):
    return sort_runs(runs, frozenset((metric,)))[environment, CELL].values[metric]


# ------------------------------------------------------------------------------------------------ the cut


def test_steady_runs_keep_exactly_what_the_driver_said():
    runs = study({BASE: steady, OTHER: steady}, blocks=12)
    assert [part.cut for part in find_steady(runs).values()] == [0] * 24
    assert values_of(runs, BASE) == {run.block: run.value("tps") for run in runs if run.environment == BASE}


def test_a_warm_up_that_one_run_shows_by_itself_is_cut_from_all_runs_of_its_block():
    parts = find_steady(study({BASE: steady, OTHER: warming}, blocks=16))
    by_block = {}
    for identity, part in parts.items():
        by_block.setdefault(int(identity[1:3]), set()).add(part.cut)
    assert all(len(cuts) == 1 for cuts in by_block.values())
    assert all(15 <= min(cuts) <= SECONDS // 2 for cuts in by_block.values())


def test_a_warm_up_that_no_run_shows_by_itself_is_cut_once_they_show_it_together():
    def slight(random):
        return warming(random, by=0.08, seconds=15)

    parts = find_steady(study({BASE: slight, OTHER: slight}, blocks=16))
    cuts = {int(identity[1:3]): part.cut for identity, part in parts.items()}
    assert cuts[1] == cuts[2] == 0
    assert all(cuts[block] > 0 for block in range(10, 17))


def test_a_dip_somewhere_in_a_run_is_no_warm_up():
    def dipping(random):
        start = random.integers(8, 30)
        places = np.arange(SECONDS)
        return steady(random) * np.where((places >= start) & (places < start + 10), 0.6, 1.0)

    parts = find_steady(study({BASE: dipping, OTHER: dipping}, blocks=24))
    assert sum(part.cut > 0 for part in parts.values()) <= 0.1 * len(parts)


def test_a_warm_up_of_one_environment_does_not_make_two_kinds_of_blocks():
    shapes = {BASE: steady, OTHER: lambda random: warming(random, by=0.8, seconds=8)}
    (found,) = compare_study(make_plan(blocks=24), study(shapes, blocks=24), metrics=())
    assert found.verdict is Verdict.EQUIVALENT
    assert "anomalies_differ" not in codes(found)


def test_the_level_after_a_cut_is_the_drivers_times_what_its_seconds_say():
    runs = study({BASE: warming, OTHER: warming})
    parts = find_steady(runs)
    run = runs[-1]
    part = parts[run.identity]
    seconds = seconds_of(run)
    assert part.cut > 0
    assert part.ratio == pytest.approx(seconds[part.cut :].mean() / seconds.mean())
    assert values_of(runs, run.environment)[run.block] == pytest.approx(run.value("tps") * part.ratio)


def test_a_difference_that_only_the_warm_up_made_goes_away():
    runs = study({BASE: steady, OTHER: lambda random: warming(random, by=0.8, seconds=8)}, blocks=24)
    late = []
    for series in (runs, [replace(run, series=()) for run in runs]):
        own, base = (values_of(series, name) for name in (OTHER, BASE))
        late.append(np.median([own[block] / base[block] for block in range(1, 25)]))
    assert late == [pytest.approx(1, abs=0.01), pytest.approx(0.89, abs=0.01)]


def test_other_metrics_stay_those_of_the_whole_run():
    runs = [
        replace(run, measurements=(*run.measurements, make_run("x", 1, latency_p50=0.002).measurements[0]))
        for run in study({BASE: warming, OTHER: warming})
    ]
    assert set(values_of(runs, BASE, "latency_p50").values()) == {0.002}


def test_a_cut_stays_what_it_is_when_further_blocks_come():
    runs = study({BASE: warming, OTHER: steady}, blocks=12)
    whole = find_steady(runs)
    for last in range(1, 12):
        parts = find_steady([run for run in runs if run.block <= last])
        assert all(whole[identity] == part for identity, part in parts.items())


def test_the_loop_and_the_answer_cut_alike():
    plan = make_plan(blocks=12)
    runs = study({BASE: warming, OTHER: lambda random: warming(random, 1300.0)}, blocks=12)
    (found,) = compare_study(plan, runs)
    assert found.decided_at is not None
    assert open_pairs(plan, runs, found.decided_at)
    assert not open_pairs(plan, runs, found.decided_at + 1)


# ------------------------------------------------------------------------------------------------ no cut


def test_runs_in_slices_and_runs_without_seconds_have_no_part():
    random = np.random.default_rng(2)
    sliced = run_of(BASE, 1, warming(random), together="t1")
    short = run_of(OTHER, 1, warming(random)[:10])
    assert find_steady([sliced, short, make_run(BASE, 2, tps=1.0)]) == {}


def test_a_block_with_a_run_without_seconds_is_compared_whole():
    runs = study({BASE: warming, OTHER: warming})
    bare = [replace(run, series=()) if (run.block, run.environment) == (8, BASE) else run for run in runs]
    parts = find_steady(bare)
    assert parts[f"b08/{OTHER}/{CELL}"] == SteadyPart(cut=0, ratio=1.0, steady=True)
    assert parts[f"b07/{OTHER}/{CELL}"].cut > 0


def test_invalid_runs_say_nothing_about_the_cut():
    runs = study({BASE: steady, OTHER: steady})
    wrong = [run_of("wrong", block, np.linspace(1, 1000, SECONDS), validity=Validity.INVALID) for block in range(1, 9)]
    assert values_of([*runs, *wrong], BASE) == values_of(runs, BASE)


@pytest.mark.parametrize("values", [[0.0] * 60, [math.nan] * 60, [math.inf] + [1.0] * 59])
def test_seconds_that_are_no_numbers_or_nothing_at_all_are_no_seconds(values):
    assert (
        seconds_of(replace(make_run(BASE, 1), series=(Series(metric="tps", times=range(1, 61), values=values),))).size
        == 0
    )


def test_a_report_that_came_late_stands_for_all_its_seconds():
    series = Series(metric="tps", times=(1.0, 2.0, 5.0, 6.0), values=(10.0, 20.0, 30.0, 40.0))
    run = replace(make_run(BASE, 1), series=(series,))
    assert seconds_of(run).tolist() == [10, 20, 30, 30, 30, 40]


# ------------------------------------------------------------------------------------------------ invariances

shape = st.sampled_from([steady, warming])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), shape, shape, st.floats(0.01, 100))
def test_scaling_all_runs_changes_no_cut(seed, own, other, factor):
    runs = study({BASE: own, OTHER: other}, seed=seed)
    scaled = [
        replace(run, series=(replace(series, values=tuple(value * factor for value in series.values)),))
        for run in runs
        for series in run.series
    ]
    before, after = find_steady(runs), find_steady(scaled)
    assert {name: part.cut for name, part in before.items()} == {name: part.cut for name, part in after.items()}
    assert [part.ratio for part in after.values()] == pytest.approx([part.ratio for part in before.values()], rel=1e-4)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), shape, shape, st.data())
def test_swapping_the_arms_of_any_blocks_swaps_their_values_and_nothing_else(seed, own, other, data):
    """What the test on differences rests upon: the cut does not know which run is whose."""
    runs = study({BASE: own, OTHER: other}, seed=seed)
    swapped = data.draw(st.sets(st.integers(1, 8)))
    names = {BASE: OTHER, OTHER: BASE}
    turned = [
        replace(run, environment=names[run.environment], identity=f"{run.identity}-turned")
        if run.block in swapped
        else run
        for run in runs
    ]
    before, after = sort_runs(runs, frozenset(("tps",))), sort_runs(turned, frozenset(("tps",)))
    for block in range(1, 9):
        whole = [arms[name, CELL].values["tps"][block] for arms in (before, after) for name in (BASE, OTHER)]
        assert whole[2:] == pytest.approx(whole[1::-1] if block in swapped else whole[:2], rel=1e-12)


def test_cuts_make_no_false_differences_and_cost_steady_runs_nothing():
    differences, whole = [], []
    for number in range(40):
        runs = study({BASE: steady, OTHER: steady}, blocks=12, seed=100 + number)
        arms = sort_runs(runs, frozenset(("tps",)))
        bare = sort_runs([replace(run, series=()) for run in runs], frozenset(("tps",)))
        for found, target in ((arms, differences), (bare, whole)):
            own, base = (found[name, CELL].values["tps"] for name in (OTHER, BASE))
            target += [math.log(own[block] / base[block]) for block in own]
    assert np.std(differences) < 1.05 * np.std(whole)
    assert abs(np.mean(differences)) < 3 * np.std(differences) / math.sqrt(len(differences))


# ------------------------------------------------------------------------------------------------ no steady state


def climbing(random):
    return steady(random) * np.linspace(0.5, 1.5, SECONDS)


def test_runs_that_never_get_steady_are_said_to_with_what_helps():
    (found,) = compare_study(make_plan(blocks=8), study({BASE: steady, OTHER: climbing}))
    assert "not_steady" in codes(found)
    (text,) = [warning.text for warning in found.warnings if warning.code == "not_steady"]
    assert "in 8 of 16 runs" in text
    assert "(warmup, by 30 s or more)" in text


def test_such_a_run_loses_half_of_its_seconds_at_most():
    parts = find_steady(study({BASE: climbing, OTHER: climbing}))
    assert {part.cut for part in parts.values()} == {0, SECONDS // 2}
    assert not any(part.steady for part in parts.values())


def test_steady_runs_and_those_that_warm_up_are_not_called_unsteady():
    for shapes in ({BASE: steady, OTHER: steady}, {BASE: steady, OTHER: warming}):
        (found,) = compare_study(make_plan(blocks=8), study(shapes))
        assert "not_steady" not in codes(found)


def test_levels_across_blocks_are_those_of_whole_runs():
    runs = study({BASE: warming, OTHER: warming})
    whole = {run.block: run.value("tps") for run in runs if run.environment == BASE}
    for series in (runs, whole_runs(runs)):
        arms = sort_runs(series, frozenset(("tps",)))
        assert arms[BASE, CELL].levels("tps") == pytest.approx(whole)
    assert sort_runs(runs, frozenset(("tps",)))[BASE, CELL].values["tps"] != pytest.approx(whole)


@given(st.lists(st.lists(st.one_of(st.floats(-1e9, 1e9), st.just(math.nan)), min_size=5, max_size=5), min_size=1))
def test_medians_of_rows_are_those_that_leave_gaps_out(rows):
    values = np.array(rows)
    values = values[np.isfinite(values).any(axis=1)]
    assert row_medians(values).tolist() == [np.median(row[np.isfinite(row)]) for row in values]


def test_runs_that_were_cut_before_are_known_again_only_where_they_are_the_same():
    runs = study({BASE: steady, OTHER: warming}, blocks=4)
    once = find_steady(runs)
    assert find_steady(reversed(runs)) == find_steady(list(runs)) == once
    slower = [run_of(run.environment, run.block, [1000.0] * SECONDS) for run in runs]
    assert all(part.cut == 0 for part in find_steady(slower).values())
    assert find_steady(replace(run, series=()) for run in runs) == {}
