"""The noise model that the sequential rule was designed with: an assumption, drawn for many comparisons at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseModel:
    """Shares are fractions; a pair of numbers is a uniform range over machines (or, for `fall`, over outliers).

    `run_cv` varies from run to run, `second_cv` from second to second with lag-1 autocorrelation `phi`. The machine's
    level walks by `walk` per square root of a minute and jumps by `step` (SD) once in `step_minutes` on average.
    """

    run_cv: tuple[float, float] = (0.01, 0.03)
    second_cv: float = 0.04
    phi: float = 0.6
    walk: float = 0.0015
    step: float = 0.03
    step_minutes: float = 120.0
    outliers: tuple[float, float] = (0.02, 0.05)
    fall: tuple[float, float] = (0.2, 0.6)
    overhead: float = 0.5
    """Minutes between two runs."""


DEFAULT = NoiseModel()
STRESS = {
    "drift x10": NoiseModel(walk=0.015, step=0.3),
    "CV 10 %": NoiseModel(run_cv=(0.10, 0.10)),
    "CV 0.3 %": NoiseModel(run_cv=(0.003, 0.003)),
    "20 % outliers": NoiseModel(outliers=(0.20, 0.20)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """As many machines as comparisons, each with its own noise; arrays of shape (g, 1)."""

    model: NoiseModel
    run_cv: Floats
    outliers: Floats


def draw_machines(rng: np.random.Generator, model: NoiseModel, count: int) -> Machines:
    """Machines of one model."""
    return Machines(
        model=model,
        run_cv=rng.uniform(*model.run_cv, (count, 1)),
        outliers=rng.uniform(*model.outliers, (count, 1)),
    )


def draw_runs(rng: np.random.Generator, machines: Machines, runs: int, minutes: float) -> Floats:
    """Logarithms of the throughput of `runs` runs of `minutes` each, one after the other: shape (g, runs)."""
    model = machines.model
    shape = len(machines.run_cv), runs
    second_noise = model.second_cv * np.sqrt((1 + model.phi) / (1 - model.phi) / (60 * minutes))
    fallen = np.where(rng.random(shape) < machines.outliers, np.log1p(-rng.uniform(*model.fall, shape)), 0.0)
    own = rng.normal(size=shape) * machines.run_cv + rng.normal(0, second_noise, shape)
    return np.asarray(own + fallen + _drift(rng, model, shape, minutes), dtype=np.float64)


def _drift(rng: np.random.Generator, model: NoiseModel, shape: tuple[int, int], minutes: float) -> Floats:
    """Mean level of the machine in each run, followed in steps of at most a minute and a half."""
    count, runs = shape
    parts = max(1, round(minutes))
    every = (minutes + model.overhead) / parts
    jumps = rng.poisson(every / model.step_minutes, (count, runs * parts))
    moves = rng.normal(size=jumps.shape) * np.sqrt(model.walk**2 * every + model.step**2 * jumps)
    return np.asarray(np.cumsum(moves, axis=-1).reshape(count, runs, parts).mean(axis=-1), dtype=np.float64)


def draw_blocks(
    rng: np.random.Generator, machines: Machines, blocks: int, arms: int = 2, minutes: float = 1.0
) -> Floats:
    """Logarithms of throughput, shape (arms, g, blocks): each block holds all arms in an order of its own."""
    count = len(machines.run_cv)
    values = draw_runs(rng, machines, blocks * arms, minutes).reshape(count, blocks, arms)
    order = np.argsort(rng.random(values.shape), axis=-1)
    return np.moveaxis(np.take_along_axis(values, order, axis=-1), -1, 0)
