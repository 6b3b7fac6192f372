"""Three runs of 30 minutes of one environment, then three of the other: simulated, under two models of the noise.

One is fitted to the recording in `bench/noise`, which has runs of 2 and 8 s within an hour: its drift goes on for three
hours here, so that it says the worst. The other is what `machine_noise` assumes, with next to no drift.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from bank.conditions import EQUAL, Question
from bank.replay import SEED, Floats
from machine_noise import DEFAULT, draw_machines, draw_runs
from noise.recorded import load_runs
from noise.simulate import draw_course
from noise.structure import Structure, fit_cell
from other_tests import welch_differs

from pgstrata.stats.floor import MAD_TO_SD

MINUTES: Final = 180.0
_RUNS: Final = 6
_SECONDS: Final = 1800
# Between two runs; and between two moments of one at which the level is drawn.
_BETWEEN: Final = 5.0
_STEP: Final = 10.0
_DRAWN: Final = 1000


def structure_of(workload: str) -> Structure:
    """The noise model of a workload."""
    return fit_cell(load_runs(), workload, np.random.default_rng(SEED))[0]


def draw_long_runs(rng: np.random.Generator, model: Structure, count: int) -> Floats:
    """ln of the throughput of runs one after the other, shape (count, runs)."""
    moments = round(_SECONDS / _STEP)
    steps = np.full((count, _RUNS * moments), _STEP)
    steps[:, ::moments] += _BETWEEN
    runs = draw_course(rng, model, steps).reshape(count, _RUNS, moments).mean(axis=2)
    settled = model.start * model.settling / _SECONDS
    own = math.hypot(model.lasting, settled, model.second / math.sqrt(_SECONDS))
    return np.asarray(runs + rng.normal(0, own, runs.shape), dtype=np.float64)


def spread_of(runs: Floats) -> float:
    """Robust SD in percent of the difference of two neighbouring runs."""
    return 100 * MAD_TO_SD * float(np.median(np.abs(runs[:, 1] - runs[:, 0])))


def right_share(runs: Floats, question: Question) -> float:
    """Percent in which Welch's test at 5 % tells it: slower; or equal within the threshold, by two one-sided tests."""
    if question.kind == EQUAL:
        delta = math.log1p(question.threshold / 100)
        difference = runs[:, 3:].mean(axis=1) - runs[:, :3].mean(axis=1)
        inside = np.abs(difference) < delta
        apart = [welch_differs(runs[:, :3] + shift, runs[:, 3:], alpha=0.1) for shift in (-delta, delta)]
        return 100 * float(np.mean(inside & apart[0] & apart[1]))
    slowed = runs[:, 3:] + math.log1p(-float(question.kind) / 100)
    found = welch_differs(runs[:, :3], slowed) & (slowed.mean(axis=1) < runs[:, :3].mean(axis=1))
    return 100 * float(np.mean(found))


def simulate(workload: str) -> Mapping[str, Floats]:
    """Runs by model, of as many machines as shares need."""
    rng = np.random.default_rng([SEED, 3])
    assumed = draw_runs(rng, draw_machines(rng, DEFAULT, _DRAWN), _RUNS, _SECONDS / 60)
    return {"fitted, drift extrapolated": draw_long_runs(rng, structure_of(workload), _DRAWN), "assumed": assumed}
