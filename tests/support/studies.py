"""Synthetic studies: plans of any shape, and runs with a known truth."""

import math

import numpy as np

import records
from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.experiment import (
    Cell,
    Environment,
    Level,
    ServerKind,
    ServerSpec,
)
from pgstrata.model.floor import Floor
from pgstrata.model.metrics import ROUND_TPS, Measurement, Series
from pgstrata.model.plan import Block, Forecast, Plan
from pgstrata.model.runs import RunRecord, RunStatus, Validity

BASE, OTHER = "pg16", "pg18"
CELL = "simple-update-s10-c4"
NOISE = (0.01, -0.012, 0.004, -0.003, 0.008, -0.006, 0.002, 0.011, -0.009, 0.005, -0.001, 0.007)


def cell_of(clients):
    return f"simple-update-s10-c{clients}"


def make_environment(name, server="16", *, levels=None, **rest):
    levels = {"server": server} if levels is None else levels
    return Environment(
        name=name,
        levels=tuple(Level(factor=factor, value=value) for factor, value in levels.items()),
        server=ServerSpec(kind=ServerKind.CATALOGUE, value=server),
        **rest,
    )


def make_experiment(environments=None, *, metric="tps", clients=(4,), blocks=12, factors=("server",)):
    environments = environments or (make_environment(BASE), make_environment(OTHER, "18"))
    return records.make_experiment(
        tuple(environments),
        question="Is it faster?",
        metric=metric,
        blocks=blocks,
        seed=42,
        cells=tuple(Cell(workload="simple-update", scale=10, clients=c, threads=1) for c in clients),
        factors=tuple(factors),
    )


def make_plan(*args, blocks=12, floors=None, **rest):
    """`floors` hold s0 by cell."""
    return Plan(
        identity="p",
        experiment=make_experiment(*args, blocks=blocks, **rest),
        blocks=tuple(Block(number=number, visits=()) for number in range(1, blocks + 1)),
        forecast=Forecast(seconds_per_block=0, seconds_building=0, seconds_total=0, disk_bytes=0, datasets=()),
        floors={cell: make_floor(s0, cell) for cell, s0 in (floors or {}).items()},
    )


def make_floor(s0, cell=CELL, **changes):
    fields = {
        "s0": s0,
        "differences": 24,
        "cell": cell,
        "metric": "tps",
        "design": "runs of 60 s",
        "host": "h",
        "measured": "2026-01-01T00:00:00+00:00",
    }
    return Floor(**{**fields, **changes})


def make_run(
    environment,
    block,
    *,
    cell=CELL,
    status=RunStatus.COMPLETED,
    validity=Validity.VALID,
    together="",
    rounds=(),
    **values,
):
    series = (Series(metric=ROUND_TPS, times=tuple(range(len(rounds))), values=tuple(rounds)),) if rounds else ()
    return RunRecord(
        identity=f"b{block:02}/{environment}/{cell}",
        block=block,
        environment=environment,
        cell=cell,
        status=status,
        validity=validity,
        reasons=(),
        started="2026-01-01T00:00:00+00:00",
        measured_seconds=60.0,
        measurements=tuple(Measurement(metric=name, value=value) for name, value in values.items()),
        series=series,
        together=together,
    )


def make_runs(environment, values, *, metric="tps", **rest):
    return [make_run(environment, block, **{metric: value}, **rest) for block, value in enumerate(values, start=1)]


def noisy(centre, n, shift=0):
    """n values around a centre; the noise of different shifts is different."""
    return [centre * math.exp(NOISE[(k * (shift + 1) + shift) % len(NOISE)]) for k in range(n)]


def simulate(plan, effects=None, *, sd=0.01, seed=1, blocks=None, drift=0.1):
    """Runs of every environment in every cell.

    Args:
        plan: the plan.
        effects: ln of the ratio to the baseline, by (environment, cell) or by environment; 0 where none is given.
        sd: of a run in log units, drawn for each run from its own seed, so that more blocks leave the first ones alone.
        seed: of the noise.
        blocks: how many; default all of the plan.
        drift: sd of what a block does to all of its runs.
    """
    effects = effects or {}
    runs = []
    for block in range(1, (blocks or len(plan.blocks)) + 1):
        random = np.random.default_rng((seed, block))
        for cell in plan.experiment.cells:
            shared = random.normal(0, drift)
            for environment in plan.experiment.environments:
                name = environment.name
                effect = effects.get((name, cell.identity), effects.get(name, 0.0))
                tps = 1000 * math.exp(shared + effect + random.normal(0, sd))
                runs.append(make_run(name, block, cell=cell.identity, tps=tps))
    return runs


def simulate_slices(plan, effects=None, *, rounds=8, sd=0.02, seed=1, apart=()):
    """As `simulate`, in one cell and in slices; in blocks named by `apart` each environment has its own token."""
    runs = []
    for block in range(1, len(plan.blocks) + 1):
        random = np.random.default_rng((seed, block))
        shared = random.normal(0, 0.2, rounds)
        for environment in plan.experiment.environments:
            own = (effects or {}).get(environment.name, 0.0) + random.normal(0, sd, rounds)
            tps = (1000 * np.exp(shared + own)).tolist()
            token = f"t{block}-{environment.name}" if block in apart else f"t{block}"
            runs.append(make_run(environment.name, block, together=token, rounds=tps, tps=500.0))
    return runs


def codes(comparison):
    return [warning.code for warning in comparison.warnings]


def headline(comparisons, environment):
    (found,) = [one for one in comparisons if one.environment == environment and one.cell == ALL_CELLS]
    return found
