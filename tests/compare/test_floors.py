"""A/A differences of a study, as its control has them."""

import math
from dataclasses import replace

import numpy as np
import pytest

import records
from pgstrata.compare.noise.floors import control_differences
from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.experiment import (
    Cell,
    ControlKind,
    Environment,
    Interleave,
    ServerKind,
    ServerSpec,
)
from pgstrata.model.metrics import ROUND_TPS, Measurement, Series
from pgstrata.model.plan import Design, Forecast, Plan
from pgstrata.model.runs import RunRecord, RunStatus, Validity

READ = Cell(workload="select-only", scale=1, clients=1, threads=1)
WRITE = replace(READ, workload="simple-update")


def environment(name, control=None):
    spec = ServerSpec(kind=ServerKind.CATALOGUE, value="18")
    return Environment(name=name, levels=(), server=spec, control=control)


def plan(cells=(READ,), control=ControlKind.SAME):
    experiment = records.make_experiment(
        (environment("a"), environment("b"), environment("c", control)),
        blocks=3,
        interleave=Interleave.AUTO,
        cells=cells,
        factors=(),
    )
    forecast = Forecast(seconds_per_block=1, seconds_building=1, seconds_total=1, disk_bytes=1, datasets=())
    return Plan(identity="p", experiment=experiment, blocks=(), forecast=forecast)


def run(block, environment, tps, cell=READ, rounds=(), **more):
    values = (Measurement(metric="tps", value=tps), Measurement(metric="latency_p99", value=1 / tps))
    series = (Series(metric=ROUND_TPS, times=tuple(map(float, range(len(rounds)))), values=tuple(rounds)),)
    fields = {
        "identity": f"b{block:02d}/{environment}/{cell.identity}",
        "block": block,
        "environment": environment,
        "cell": cell.identity,
        "status": RunStatus.COMPLETED,
        "validity": Validity.VALID,
        "reasons": (),
        "started": "2026-01-01T00:00:00+00:00",
        "measured_seconds": 1.0,
        "measurements": values,
        "series": series if len(rounds) else (),
        "together": f"b{block:02d}" if len(rounds) else "",
    }
    return RunRecord(**{**fields, **more})


def differences(made, runs, metrics=("tps",)):
    return {(one.cell, one.metric): one.d for one in control_differences(made, runs, metrics)}


def test_the_control_is_paired_with_the_baseline_block_by_block():
    runs = [run(1, "a", 100), run(1, "c", 110), run(2, "c", 90), run(2, "a", 100), run(1, "b", 500), run(2, "b", 500)]
    found = differences(plan(), runs, ("tps", "latency_p99"))
    assert found[READ.identity, "tps"] == pytest.approx((math.log(1.1), math.log(0.9)))
    # lower is better: oriented the same way
    assert found[READ.identity, "latency_p99"] == pytest.approx(found[READ.identity, "tps"])
    assert set(found) == {(READ.identity, "tps"), (READ.identity, "latency_p99")}


def test_without_a_control_there_is_nothing():
    assert control_differences(plan(control=None), [run(1, "a", 100), run(1, "c", 110)], ("tps",)) == ()


def test_another_build_is_no_second_time():
    assert control_differences(plan(control=ControlKind.REBUILD), [run(1, "a", 100), run(1, "c", 110)], ("tps",)) == ()


def test_what_is_invalid_or_missing_is_left_out():
    runs = [
        run(1, "a", 100),
        run(1, "c", 110, validity=Validity.INVALID),
        run(2, "a", 100),
        run(3, "a", 100),
        run(3, "c", 105),
    ]
    assert differences(plan(), runs)[READ.identity, "tps"] == pytest.approx((math.log(1.05),))


def test_a_block_in_slices_counts_once_by_the_median_of_its_rounds():
    runs = [run(1, "a", 1, rounds=(100, 100, 100)), run(1, "c", 1, rounds=(101, 150, 102))]
    (d,) = differences(plan(), runs)[READ.identity, "tps"]
    assert d == pytest.approx(math.log(1.02), rel=1e-5)


def test_a_cell_that_collapsed_has_no_noise_to_speak_of():
    runs = [run(block, "a", 100) for block in (1, 2, 3)]
    runs += [run(1, "c", 100), *(run(block, "c", 1, status=RunStatus.COLLAPSED) for block in (2, 3))]
    assert differences(plan(), runs) == {}


def test_all_cells_together_are_the_mean_of_a_block():
    runs = [run(block, name, 100, cell) for block in (1, 2) for name in "ac" for cell in (READ, WRITE)]
    runs[-1] = run(2, "c", 121, WRITE)
    found = differences(plan((READ, WRITE)), runs)
    assert found[ALL_CELLS, "tps"] == pytest.approx((0.0, math.log(1.1)))


def test_a_block_that_lacks_a_cell_is_not_part_of_the_mean():
    runs = [run(block, name, 100, READ) for block in (1, 2) for name in "ac"]
    runs += [run(1, name, 100, WRITE) for name in "ac"]
    found = differences(plan((READ, WRITE)), runs)
    assert len(found[READ.identity, "tps"]) == 2
    assert len(found[ALL_CELLS, "tps"]) == 1


# ------------------------------------------------------------------------------------------------ components

SLICED = Design(cell=READ.identity, interleave=Interleave.SLICES, slice_seconds=0.25, rounds=8, discarded=1)
DEAD = {"clone": 1.0, "start": 2.0, "warmup": 1.0}


def visits(count, start=0.004, sd=0.02, **more):
    draws = np.random.default_rng(3)
    found = []
    for block in range(1, count + 1):
        shift = draws.normal(0, start)
        fields = {"dead_time": DEAD, **more}
        found.append(run(block, "a", 100, rounds=100 * np.exp(draws.normal(0, sd / math.sqrt(2), 8)), **fields))
        found.append(run(block, "c", 100, rounds=100 * np.exp(draws.normal(shift, sd / math.sqrt(2), 8)), **fields))
    return found


def components(made, runs, metric="tps"):
    return next(one for one in control_differences(made, runs, (metric,)) if one.cell == READ.identity)


def test_visits_in_slices_tell_their_components_and_the_share_of_an_environment_in_their_time():
    found = components(replace(plan(), designs=(SLICED,)), visits(200))
    assert found.runs is None
    assert found.slices.components.sigma_round == pytest.approx(0.02, rel=0.1)
    assert found.slices.components.rounds == 8
    # one second from slice to slice of an environment, of which two took turns; the first round is thrown away
    assert found.slices.round_seconds == pytest.approx(0.5)
    assert found.slices.dead_seconds == pytest.approx(4.0 + 0.5)


def test_a_third_environment_takes_its_share_of_a_round():
    made, runs = replace(plan(), designs=(SLICED,)), visits(12)
    third = [replace(one, environment="b", identity=f"{one.identity}-b") for one in runs if one.environment == "a"]
    assert components(made, [*runs, *third]).slices.round_seconds == pytest.approx(1 / 3)


def test_a_missing_slice_does_not_change_the_time_of_a_round():
    runs = visits(12)
    gone = (math.nan, *runs[0].series[0].times[1:])
    runs[0] = replace(runs[0], series=(replace(runs[0].series[0], times=gone),))
    assert components(replace(plan(), designs=(SLICED,)), runs).slices.round_seconds == pytest.approx(0.5)


def test_few_visits_or_unknown_times_have_no_components():
    made = replace(plan(), designs=(SLICED,))
    assert components(made, visits(4)).slices is None
    assert components(made, visits(12, dead_time={})).slices is None
    assert components(made, visits(12), "latency_p99").slices is None


def seconds(count, length=60):
    draws = np.random.default_rng(4)
    found = []
    for block in range(1, count + 1):
        for name in ("a", "c"):
            tps = 100 * math.exp(draws.normal(0, 0.02))
            series = Series(
                metric="tps",
                times=tuple(float(place + 1) for place in range(length)),
                values=tuple(tps * np.exp(draws.normal(0, 0.04, length))),
            )
            found.append(run(block, name, tps, series=(series,), dead_time=DEAD))
    return found


def test_single_runs_tell_their_components_and_the_time_around_them():
    found = components(plan(), seconds(150))
    assert found.slices is None
    assert found.runs.overhead == 4.0
    assert math.sqrt(found.runs.noise.second) == pytest.approx(0.04, rel=0.1)
    assert math.sqrt(found.runs.noise.run) == pytest.approx(0.02, rel=0.2)
    assert abs(found.runs.noise.phi) < 0.1


def test_runs_without_seconds_have_no_components():
    assert components(plan(), seconds(12, length=1)).runs is None
    assert components(plan(), seconds(2)).runs is None


def test_all_cells_together_have_no_components():
    both = replace(plan((READ, WRITE)), designs=(SLICED,))
    runs = [*visits(12), *(run(block, name, 100, cell=WRITE) for block in range(1, 13) for name in "ac")]
    together = next(one for one in control_differences(both, runs, ("tps",)) if one.cell == ALL_CELLS)
    assert (together.slices, together.runs) == (None, None)
