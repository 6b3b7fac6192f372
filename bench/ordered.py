"""How often a step along ordered levels is found and placed right: drawn axes, production code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from figures import Figure
from machine_noise import DEFAULT, Floats, draw_blocks, draw_machines, draw_runs

from pgstrata.model.plan import HORIZON
from pgstrata.stats.family import DifferenceSeries, decide_family
from pgstrata.stats.ordered import Ordered, find_steps, find_steps_unpaired
from pgstrata.stats.rule import Rule

SEED = 20260301
AXES = 2000
UNPAIRED_AXES = 1000
DRAWS = 999
LEVELS = 6
# Of few levels a headline is most often a step as well.
STOPPED_LEVELS = 3
BLOCKS = 5
# Effect: percent of the steps found, percent of those placed right.
GOALS = {0.03: (54.0, 75.0), 0.05: (83.0, 93.0), 0.10: (97.0, 95.0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Percent: any step; the step at its place, of those with any; more than one step. Bias of the effect in points."""

    found: float
    placed: float
    several: float
    bias: float


def measure_ordered() -> Sequence[Figure]:
    """Six levels in five blocks, a step before a level drawn at random; the same without blocks; many blocks."""
    figures = []
    flat = measure_axes(0.0, BLOCKS)
    note = f"the level is 5 %; {AXES} axes waver by half a point"
    figures.append(
        Figure(name="ordered: false step, 6 levels x 5", value=flat.found, goal=5.5, unit="%", notes=(note,))
    )
    figures.append(_after_stopping())
    for effect, (found, placed) in GOALS.items():
        outcome = measure_axes(effect, BLOCKS)
        note = f"more than one step in {outcome.several:.1f} %, found effects high by {outcome.bias:+.2f} points"
        figures += [
            Figure(name=f"ordered: {effect:.0%} step found", value=outcome.found, goal=found, unit="%",
                   low_is_good=False),
            Figure(name=f"ordered: {effect:.0%} step placed right", value=outcome.placed, goal=placed, unit="%",
                   low_is_good=False, notes=(note,)),
        ]  # fmt: skip
    return [*figures, _covered(), *_without_blocks()]


def measure_axes(effect: float, blocks: int) -> Outcome:
    """Axes with one step of either sign."""
    rng = np.random.default_rng([SEED, blocks, round(1000 * effect)])
    logs, places = draw_axes(rng, effect, blocks)
    return summarise([find_steps(axis, draws=DRAWS, seed=number) for number, axis in enumerate(logs)], places, effect)


def _after_stopping() -> Figure:
    """Steps where nothing differs, in studies that end when their headlines are decided, as `find_axes` sees them.

    The test takes the blocks as given; a study that ends because a headline came out different by chance ends where the
    step looks clearest.
    """
    rng = np.random.default_rng([SEED, 99])
    machines = draw_machines(rng, DEFAULT, AXES)
    logs = np.moveaxis(draw_blocks(rng, machines, HORIZON, STOPPED_LEVELS), 0, -1)
    found = []
    for number, axis in enumerate(logs):
        measured = _until_decided(axis)
        found.append([bool(find_steps(one, draws=DRAWS, seed=number).steps) for one in (measured, axis)])
    stopped, whole = 100 * np.mean(found, axis=0)
    note = f"{whole:.1f} % of the same studies with all their {HORIZON} blocks"
    name = f"ordered: false step, {STOPPED_LEVELS} levels, stopped"
    return Figure(name=name, value=float(stopped), goal=6.5, unit="%", notes=(note,))


def _until_decided(axis: Floats) -> Floats:
    """The blocks, shape (blocks, levels), with gaps for what was decided before."""
    blocks = tuple(range(1, len(axis) + 1))
    series = [DifferenceSeries(blocks=blocks, d=level - axis[:, 0]) for level in axis[:, 1:].T]
    decisions = decide_family(series, [Rule(delta=math.log(1.03))] * len(series))
    ends = [decision.block or len(axis) for decision in decisions]
    behind = np.arange(len(axis))[:, np.newaxis] >= np.array([max(ends), *ends])
    return np.where(behind, np.nan, axis)[: max(ends)]


def draw_axes(rng: np.random.Generator, effect: float, blocks: int) -> tuple[Floats, list[int]]:
    """Logarithms of shape (axes, blocks, levels), and the place of the first level after each step.

    Every second step falls.
    """
    machines = draw_machines(rng, DEFAULT, AXES)
    logs = np.moveaxis(draw_blocks(rng, machines, blocks, LEVELS), 0, -1)
    places = rng.integers(1, LEVELS, AXES).tolist()
    for axis, place, sign in zip(logs, places, np.resize([1, -1], AXES), strict=True):
        axis[:, place:] += sign * math.log1p(effect)
    return logs, places


def summarise(axes: Sequence[Ordered], places: Sequence[int], effect: float) -> Outcome:
    """Percentages over axes."""
    found = [(axis, place) for axis, place in zip(axes, places, strict=True) if axis.steps]
    right = [step for axis, place in found for step in axis.steps if step.after == place]
    sizes = [abs(step.effect) for step in right]
    return Outcome(
        found=100 * len(found) / len(axes),
        placed=100 * len(right) / max(1, len(found)),
        several=100 * sum(len(axis.steps) > 1 for axis in axes) / len(axes),
        bias=100 * (math.expm1(float(np.mean(sizes))) - effect) if sizes else math.nan,
    )


def _covered() -> Figure:
    """The interval of a step found at its place, which knows nothing of the search, in ten blocks."""
    effect = math.log1p(0.03)
    rng = np.random.default_rng([SEED, 10])
    logs, places = draw_axes(rng, 0.03, 10)
    signs = np.resize([1, -1], AXES)
    covered = [
        step.interval is not None and step.interval.low <= sign * effect <= step.interval.high
        for axis, place, sign in zip(logs, places, signs, strict=True)
        for step in find_steps(axis, draws=DRAWS).steps
        if step.after == place
    ]
    return Figure(name="ordered: interval of a 3 % step covers", value=100 * float(np.mean(covered)), goal=94.0,
                  unit="%", low_is_good=False, notes=("10 blocks, steps found at their place",))  # fmt: skip


def _without_blocks() -> Sequence[Figure]:
    """Five runs per level without blocks: in random order, and one level after the other."""
    figures = []
    for name, shuffled in (("in random order", True), ("one level after the other", False)):
        shares = {}
        for effect in (0.0, 0.05):
            rng = np.random.default_rng([SEED, 1, shuffled, round(1000 * effect)])
            machines = draw_machines(rng, DEFAULT, UNPAIRED_AXES)
            runs = draw_runs(rng, machines, LEVELS * BLOCKS, 1.0)
            runs = rng.permuted(runs, axis=-1) if shuffled else runs
            runs[:, LEVELS * BLOCKS // 2 :] += math.log1p(effect)
            axes = [
                find_steps_unpaired(list(row.reshape(LEVELS, BLOCKS)), draws=DRAWS, seed=number)
                for number, row in enumerate(runs)
            ]
            shares[effect] = summarise(axes, [LEVELS // 2] * UNPAIRED_AXES, effect)
        note = f"5 % found in {shares[0.05].found:.0f} %, placed right {shares[0.05].placed:.0f} %"
        figures.append(Figure(name=f"ordered without blocks, {name}", value=shares[0.0].found,
                              goal=6.0 if shuffled else 100.0, unit="%", notes=("false steps", note)))  # fmt: skip
    return figures
