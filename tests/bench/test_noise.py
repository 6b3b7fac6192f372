"""The recorded noise: its data file, the fitted model, adjusted metrics, comparisons made of it."""

import csv
import dataclasses
import gzip
import importlib
import math
import re
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def noise():
    """The modules of bench/noise by name; bench is no package, and its folder is on the path only here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        yield lambda name: importlib.import_module(f"noise.{name}")


@pytest.fixture(scope="module")
def runs(noise):
    return noise("recorded").load_runs()


def make_seconds(noise, runs, structure, seed=1):
    found = noise("structure").collect_seconds(runs, "select-only", np.random.default_rng(seed))
    (logs,) = noise("simulate").draw_logs(np.random.default_rng(seed), structure, found, 1)
    return found, logs


def test_the_recording_has_six_hundred_runs_and_names_nobody(noise):
    content = (BENCH / "noise" / "runs.csv.gz").read_bytes()
    assert len(content) < 400_000
    rows = list(csv.DictReader(gzip.decompress(content).decode().splitlines()))
    assert len(rows) >= 600
    texts = {row[name] for row in rows for name in ("arm", "cell", "validity")}
    assert texts <= {"baseline", "control", "select-only", "simple-update", "valid", "suspect"}
    assert all(
        re.fullmatch(r"[-\d.e+ ]*", value)
        for row in rows
        for name, value in row.items()
        if name not in {"arm", "cell", "validity"}
    )


def test_every_block_of_the_recording_has_both_arms_side_by_side(noise, runs):
    for pairs in noise("recorded").all_pairs(runs):
        assert len(pairs.rows) == (120 if pairs.run_seconds == 2 else 30)
        assert (runs.control[pairs.rows[:, 0]] != runs.control[pairs.rows[:, 1]]).all()
        apart = np.diff(runs.columns["started"][pairs.rows], axis=1)
        assert (apart > 0).all()
        assert apart.max() < 10 * (pairs.run_seconds + 5)


def test_the_seconds_of_a_run_add_up_to_its_throughput(runs):
    shares = [
        np.exp(each).mean() / tps for each, tps in zip(runs.seconds, runs.columns["tps"], strict=True) if each.size
    ]
    assert np.median(shares) == pytest.approx(1, abs=0.01)


def test_the_parts_of_a_drawn_noise_are_found_again(noise, runs):
    module = noise("structure")
    truth = module.Structure(second=0.03, slow=0.07, memory=10, start=0.15, settling=2, lasting=0.0, walk=0.02)
    found, logs = make_seconds(noise, runs, truth)
    fitted = module.fit_structure(found, module.variogram(found, logs))
    assert fitted.second == pytest.approx(0.03, abs=0.015)
    assert fitted.slow == pytest.approx(0.07, abs=0.02)
    assert fitted.start == pytest.approx(0.15, abs=0.04)
    assert 1 < fitted.settling < 4
    for length in (2, 8, 30):
        assert fitted.block_sd(length, 3) == pytest.approx(truth.block_sd(length, 3), rel=0.25)


@pytest.mark.parametrize("seconds", [2, 8])
def test_drawn_differences_vary_as_the_model_says(noise, seconds):
    model = noise("structure").Structure(
        second=0.03, slow=0.08, memory=10.0, start=0.1, settling=2.0, lasting=0.02, walk=0.02
    )
    d = noise("simulate").draw_differences(np.random.default_rng(5), model, 1500, 20, seconds, 3.0)
    assert d.std() == pytest.approx(model.block_sd(seconds, 3.0), rel=0.03)


def test_falls_enter_drawn_differences(noise):
    model = noise("structure").Structure(
        second=1e-6, slow=1e-6, memory=9, start=0.0, settling=2, lasting=0.0, walk=0.0, fallen=0.1, falls=(0.5,)
    )
    d = noise("simulate").draw_differences(np.random.default_rng(5), model, 500, 20, 2, 3.0)
    assert np.mean(np.abs(d) > 0.4) == pytest.approx(0.18, abs=0.02)


def test_the_autocorrelation_of_short_runs_is_found_without_bias(noise):
    rng = np.random.default_rng(3)
    course = np.zeros((400, 2, 8))
    course[..., 0] = rng.normal(0, 0.05, (400, 2))
    for second in range(1, 8):
        course[..., second] = 0.7 * course[..., second - 1] + rng.normal(0, 0.05 * math.sqrt(1 - 0.49), (400, 2))
    phi, sd = noise("within").fit_ar1(course + rng.normal(0, 0.1, (400, 2, 1)))
    assert phi == pytest.approx(0.7, abs=0.08)
    assert sd == pytest.approx(0.05, rel=0.15)


def test_the_coefficients_of_a_series_come_from_the_others(noise, runs):
    module = noise("adjust")
    pairs = noise("recorded").find_pairs(runs, "select-only", 2)
    adjustment = next(each for each in module.ADJUSTMENTS if each.name == "canary before")
    _, before = module.adjust(runs, pairs, adjustment)
    changed = runs.columns["tps"].copy()
    own = runs.columns["series"] == pairs.series[0]
    changed[own] = np.random.default_rng(1).lognormal(11, 1, int(own.sum()))
    other = dataclasses.replace(runs, columns={**runs.columns, "tps": changed})
    _, after = module.adjust(other, pairs, adjustment)
    assert after[0] == pytest.approx(before[0])
    assert after[1] != pytest.approx(before[1], rel=1e-6)


def test_slopes_survive_outliers_and_constant_covariates(noise):
    rng = np.random.default_rng(2)
    x = np.stack([rng.normal(0, 1, 100), np.zeros(100)], axis=1)
    d = -0.5 * x[:, 0] + rng.normal(0, 0.05, 100)
    d[:5] += 10
    assert noise("adjust").fit_slopes(x, d) == pytest.approx([-0.5, 0], abs=0.03)


def test_redrawn_comparisons_keep_the_order(noise):
    d = np.arange(1.0, 61.0)
    draws = noise("redraw").redraw(np.random.default_rng(1), d, 50, 24)
    assert (np.diff(np.abs(draws), axis=1) > 0).all()
    assert abs(np.mean(np.sign(draws))) < 0.1


def test_judged_comparisons_of_small_noise_find_the_effect_and_its_direction(noise):
    module = noise("redraw")
    draws = module.redraw(np.random.default_rng(1), np.random.default_rng(2).normal(0, 0.01, 60), 100, 24)
    found = module.judge(draws, 0.05, math.log(1.03))
    assert found.right > 99
    assert found.blocks < 9
    assert module.judge(draws, 0.0, math.log(1.03)).different < 12
