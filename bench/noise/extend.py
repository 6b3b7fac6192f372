"""What extending a run that never got steady would bring: the fitted noise drawn by the second, with warm-ups or not.

    PYTHONPATH=bench .venv/bin/python -m noise.extend

Each block has two equal arms with runs of a minute that could go on for another one. What counts is the difference of
their throughput: of whole runs, of what the warm-up cut of pgstrata leaves, or of the second minute where a run of the
block did not get steady (in both arms, or only in that one). ADR 0008 has the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from noise.recorded import CELLS, Floats, dead_seconds, load_runs
from noise.simulate import draw_course
from noise.structure import Structure, fit_cell

from pgstrata.model.metrics import TPS, Measurement, Series
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.sources.steady import find_steady
from pgstrata.stats.floor import noise_floor

SEED = 20261123
STUDIES, BLOCKS, SECONDS = 200, 12, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """Throughput begins lower by the share `depth` and comes up with the time constant `seconds`, in how many arms."""

    name: str
    depth: float = 0.0
    seconds: float = 1.0
    arms: int = 2


WARM_UPS = (
    WarmUp(name="none"),
    WarmUp(name="10 % for 20 s, both arms", depth=0.1, seconds=20),
    WarmUp(name="10 % for 60 s, both arms", depth=0.1, seconds=60),
    WarmUp(name="10 % for 60 s, one arm", depth=0.1, seconds=60, arms=1),
    WarmUp(name="10 % for 300 s, one arm", depth=0.1, seconds=300, arms=1),
)
POLICIES = ("whole runs", "cut and label", "both extended", "one extended")


def main() -> None:
    rng, runs = np.random.default_rng(SEED), load_runs()
    for cell in CELLS:
        structure = fit_cell(runs, cell, rng)[0]
        for warm_up in WARM_UPS:
            _tell(f"{cell}, warm-up {warm_up.name}", *_measure(rng, structure, warm_up, dead_seconds(runs, 8)))


def _tell(name: str, unsteady: float, blocks: float, found: Sequence[Floats]) -> None:
    print(f"{name}: {unsteady:.1%} of the runs unsteady, {blocks:.1%} of the blocks extended")
    for policy, d in zip(POLICIES, found, strict=True):
        print(f"    {policy:<14} median {100 * np.median(d):+.2f} %, scale {100 * noise_floor(d - np.median(d)):.2f} %")


def _measure(
    rng: np.random.Generator, structure: Structure, warm_up: WarmUp, dead: float
) -> tuple[float, float, list[Floats]]:
    """Shares of unsteady runs and of blocks that have one, and the differences by each policy."""
    values = _draw(rng, structure, warm_up, dead)
    unsteady, rows = [], []
    for study in values:
        records = [_record(block, arm, study[block, arm, :SECONDS]) for block in range(BLOCKS) for arm in (0, 1)]
        parts = find_steady(records)
        for block in range(BLOCKS):
            first = study[block, :, :SECONDS].mean(axis=1)
            second = study[block, :, SECONDS:].mean(axis=1)
            own = [parts[f"{block}/{arm}"] for arm in (0, 1)]
            cut = first * [part.ratio for part in own]
            late = np.array([not part.steady for part in own])
            unsteady.append(late)
            kept = (first, cut, second if late.any() else cut, np.where(late, second, cut))
            rows.append([math.log(one / other) for one, other in kept])
    flags = np.array(unsteady)
    return float(flags.mean()), float(flags.any(axis=1).mean()), list(np.array(rows).T)


def _draw(rng: np.random.Generator, structure: Structure, warm_up: WarmUp, dead: float) -> Floats:
    """Throughput by second, shape (studies, blocks, 2, 2 * SECONDS)."""
    length = 2 * SECONDS
    begins = np.arange(2 * BLOCKS) * (length + dead)
    moments = np.tile((begins[:, np.newaxis] + np.arange(length)).ravel(), (STUDIES, 1))
    course = draw_course(rng, structure, np.diff(moments, axis=1, prepend=moments[:, :1]))
    logs = course.reshape(STUDIES, BLOCKS, 2, length)
    starts, lasting = (rng.normal(0, sd, (*logs.shape[:3], 1)) for sd in (structure.start, structure.lasting))
    seconds = np.arange(length)
    logs = logs + starts * np.exp(-seconds / structure.settling) + lasting + rng.normal(0, structure.second, logs.shape)
    logs[:, :, : warm_up.arms] += np.log1p(-warm_up.depth * np.exp(-seconds / warm_up.seconds))
    return np.exp(logs)


def _record(block: int, arm: int, values: Floats) -> RunRecord:
    seconds = tuple(float(second) for second in range(1, len(values) + 1))
    return RunRecord(
        identity=f"{block}/{arm}", block=block, environment=str(arm), cell="c", status=RunStatus.COMPLETED,
        validity=Validity.VALID, reasons=(), started="", measured_seconds=float(len(values)),
        measurements=(Measurement(metric=TPS.name, value=float(values.mean())),),
        series=(Series(metric=TPS.name, times=seconds, values=tuple(values.tolist())),),
    )  # fmt: skip


if __name__ == "__main__":
    main()
