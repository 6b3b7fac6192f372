"""Three runs of 30 minutes of one environment, then three of the other, under the noise fitted to `bench/noise`.

That recording has runs of 2 and 8 s: what half an hour does is the model's extrapolation, not a measurement.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from bank.conditions import EQUAL, Question
from bank.replay import SEED, Floats
from noise.recorded import load_runs
from noise.simulate import draw_course
from noise.structure import Structure, fit_cell
from other_tests import welch_differs

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
    """SD in percent of the difference of two neighbouring runs."""
    return 100 * float((runs[:, 1] - runs[:, 0]).std())


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


def simulate(workload: str) -> Floats:
    """Runs of as many machines as shares need."""
    return draw_long_runs(np.random.default_rng([SEED, 3]), structure_of(workload), _DRAWN)
