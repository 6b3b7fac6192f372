"""A/A differences of a study, as its control has them."""

import math
from dataclasses import replace

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
from pgstrata.model.plan import Forecast, Plan
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
