"""The fitted noise drawn again: as block differences, or at the moments of the recording."""

from __future__ import annotations

import math

import numpy as np
from noise.recorded import Floats
from noise.structure import Seconds, Structure


def draw_course(rng: np.random.Generator, model: Structure, steps: Floats) -> Floats:
    """The parts `slow` and `walk` together at moments that are `steps` seconds apart.

    Args:
        rng: generator.
        model: the noise.
        steps: seconds since the moment before, shape (count, moments); those of the first moment play no part.

    Returns:
        Shape of the steps.
    """
    kept = np.exp(-steps / model.memory)
    fresh, moves = model.slow * np.sqrt(1 - kept**2), model.walk * np.sqrt(steps / 60)
    course = np.empty_like(steps)
    slow, walk = rng.normal(0, model.slow, len(steps)), np.zeros(len(steps))
    for moment in range(steps.shape[1]):
        if moment:
            slow = kept[:, moment] * slow + fresh[:, moment] * rng.normal(size=len(steps))
            walk = walk + moves[:, moment] * rng.normal(size=len(steps))
        course[:, moment] = slow + walk
    return course


def draw_differences(
    rng: np.random.Generator, model: Structure, count: int, blocks: int, run_seconds: int, dead: float
) -> Floats:
    """Block differences of two equal arms with labels drawn at random, shape (count, blocks).

    A block has four runs: both cells in random order in the first arm, then in the second. `dead` are seconds between
    two runs.
    """
    slot = run_seconds + dead
    places = rng.integers(0, 2, (count, blocks, 2)) + np.array([0, 2])
    begins = (4 * np.arange(blocks)[:, np.newaxis] + places).reshape(count, 2 * blocks) * slot
    moments = (begins[:, :, np.newaxis] + np.arange(run_seconds)).reshape(count, -1)
    course = draw_course(rng, model, np.diff(moments, axis=1, prepend=moments[:, :1]))
    runs = course.reshape(count, 2 * blocks, run_seconds).mean(axis=2)
    settled = float(np.exp(-np.arange(run_seconds) / model.settling).mean())
    own = math.hypot(model.lasting, model.start * settled, model.second / math.sqrt(run_seconds))
    runs += rng.normal(0, own, runs.shape)
    if model.falls:
        hit = rng.random(runs.shape) < model.fallen
        runs -= np.where(hit, rng.choice(model.falls, runs.shape), 0.0)
    arms = runs.reshape(count, blocks, 2)
    return np.asarray((arms[:, :, 1] - arms[:, :, 0]) * rng.choice([-1.0, 1.0], (count, blocks)), dtype=np.float64)


def draw_logs(rng: np.random.Generator, model: Structure, seconds: Seconds, count: int) -> Floats:
    """What the model would have recorded at the same moments, falls left out, shape (count, seconds)."""
    steps = np.tile(np.diff(seconds.times, prepend=seconds.times[0]), (count, 1))
    _, run = np.unique(seconds.run, return_inverse=True)
    decay = np.exp(-seconds.place / model.settling)
    starts, lasting = (rng.normal(0, sd, (count, int(run.max()) + 1)) for sd in (model.start, model.lasting))
    own = starts[:, run] * decay + lasting[:, run] + rng.normal(0, model.second, steps.shape)
    return np.asarray(draw_course(rng, model, steps) + own, dtype=np.float64)
