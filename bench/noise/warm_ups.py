"""What a warm-up that goes on while it is measured does to verdicts, and how often it is warned of.

    PYTHONPATH=bench .venv/bin/python -m noise.warm_ups

The fitted noise is drawn by the second: studies of 24 blocks of two arms that are equal but for the warm-up, runs of a
minute. ADR 0008 has the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from noise.recorded import CELLS, Floats, dead_seconds, load_runs
from noise.simulate import draw_course
from noise.structure import Structure, fit_cell

from pgstrata.compare.verdicts.doubts import is_unsettled
from pgstrata.model.answer import Verdict
from pgstrata.stats.family import DifferenceSeries, decide_families
from pgstrata.stats.floor import noise_floor
from pgstrata.stats.rule import Rule

SEED = 20261123
STUDIES, BLOCKS, SECONDS = 400, 24, 60
LOOKS = (8, 12, 24)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """Throughput begins lower by the share `depth` and comes up with the time constant `seconds`, in how many arms."""

    name: str
    depth: float = 0.0
    seconds: float = 1.0
    arms: int = 2


WARM_UPS = (
    WarmUp(name="none"),
    WarmUp(name="50 % for 5 s, both arms", depth=0.5, seconds=5),
    WarmUp(name="10 % for 20 s, both arms", depth=0.1, seconds=20),
    WarmUp(name="30 % for 3 s, one arm", depth=0.3, seconds=3, arms=1),
    WarmUp(name="50 % for 5 s, one arm", depth=0.5, seconds=5, arms=1),
    WarmUp(name="50 % for 10 s, one arm", depth=0.5, seconds=10, arms=1),
    WarmUp(name="10 % for 20 s, one arm", depth=0.1, seconds=20, arms=1),
    WarmUp(name="10 % for 60 s, one arm", depth=0.1, seconds=60, arms=1),
    WarmUp(name="10 % for 300 s, one arm", depth=0.1, seconds=300, arms=1),
)


def main() -> None:
    rng, runs = np.random.default_rng(SEED), load_runs()
    for cell in CELLS:
        structure = fit_cell(runs, cell, rng)[0]
        for warm_up in WARM_UPS:
            values = _draw(rng, structure, warm_up, dead_seconds(runs, 8))
            _tell(f"{cell}, warm-up {warm_up.name}", np.log(values.mean(axis=3)), _openings(values))


def _tell(name: str, logs: Floats, openings: Floats) -> None:
    d = logs[:, :, 0] - logs[:, :, 1]
    warned = [np.mean([is_unsettled(study[:blocks, 0].tolist()) for study in openings]) for blocks in LOOKS]
    families = [[DifferenceSeries(blocks=tuple(range(1, BLOCKS + 1)), d=row)] for row in d]
    decisions = decide_families(families, [[Rule(delta=math.log1p(0.03))]] * len(families))
    different = np.mean([one.verdict in {Verdict.BETTER, Verdict.WORSE} for (one,) in decisions])
    print(
        f"{name}: bias {100 * np.median(d):+.1f} %, scale {100 * noise_floor(d - np.median(d)):.1f} %, "
        f"different {different:.1%}, warned after {LOOKS} blocks {' '.join(f'{share:.0%}' for share in warned)}"
    )


def _openings(values: Floats) -> Floats:
    """By how much the first fifth of each run differs from the rest, shape (studies, blocks, 2)."""
    first = SECONDS // 5
    return np.asarray(values[..., :first].mean(axis=-1) / values[..., first:].mean(axis=-1) - 1, dtype=np.float64)


def _draw(rng: np.random.Generator, structure: Structure, warm_up: WarmUp, dead: float) -> Floats:
    """Throughput by second, shape (studies, blocks, 2, SECONDS)."""
    begins = np.arange(2 * BLOCKS) * (SECONDS + dead)
    moments = np.tile((begins[:, np.newaxis] + np.arange(SECONDS)).ravel(), (STUDIES, 1))
    course = draw_course(rng, structure, np.diff(moments, axis=1, prepend=moments[:, :1]))
    logs = course.reshape(STUDIES, BLOCKS, 2, SECONDS)
    starts, lasting = (rng.normal(0, sd, (*logs.shape[:3], 1)) for sd in (structure.start, structure.lasting))
    seconds = np.arange(SECONDS)
    logs = logs + starts * np.exp(-seconds / structure.settling) + lasting + rng.normal(0, structure.second, logs.shape)
    logs[:, :, : warm_up.arms] += np.log1p(-warm_up.depth * np.exp(-seconds / warm_up.seconds))
    return np.exp(logs)


if __name__ == "__main__":
    main()
