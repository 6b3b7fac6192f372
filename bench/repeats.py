"""What the next run makes of a run that looked wrong: simulated studies, measured as `run` would, production code.

One of two environments is far ahead, so that all is decided after seven blocks. Its run in the seventh is off, or not:
then a block of its own follows, in which that is over, or still there.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from figures import Figure
from machine_noise import DEFAULT, STRESS, Floats, NoiseModel, draw_blocks, draw_machines

from pgstrata.app.question import load_plan
from pgstrata.compare.repeats import find_anomalies, wanted_pairs
from pgstrata.model.anomaly import Repeat
from pgstrata.model.metrics import Measurement
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord, RunStatus, Validity

SEED = 20260402
STUDIES = 500
DECIDED = 7
SIZES = (0.2, 0.4)
# In log units: more than a run that stalls loses.
AHEAD = 2.0
EXPERIMENT = """
question = "What does the next run make of it?"
blocks = 24
interleave = "runs"
[[environments]]
name = "plain"
server = "embedded"
[[environments]]
name = "ahead"
server = "embedded"
options.extra_work = 1
[[cells]]
workload = "select-only"
scale = 10
clients = 2
run = "60s"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The environment ahead is slower by the fraction `size` in its seventh run, and from there on if it `stays`."""

    size: float
    stays: bool = False


def measure_repeats() -> Sequence[Figure]:
    """Of what was seen in the last block, what the next one says, percent."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "repeats.toml"
        file.write_text(EXPERIMENT)
        plan = replace(load_plan(file), floors={})
    figures: list[Figure] = []
    for size in SIZES:
        still = _simulate(plan, DEFAULT, Scenario(size=size, stays=True))
        gone = _simulate(plan, DEFAULT, Scenario(size=size))
        off = f"anomalies: run off by {100 * size:.0f} %"
        figures += [
            Figure(name=f"{off} that stays, confirmed", value=_share(still, Repeat.CONFIRMED), goal=90.0, unit="%",
                   low_is_good=False, notes=(_render(still),)),
            Figure(name=f"{off} once, confirmed", value=_share(gone, Repeat.CONFIRMED), goal=10.0, unit="%",
                   notes=(_render(gone),)),
            Figure(name=f"{off} once, transient", value=_share(gone, Repeat.TRANSIENT), goal=90.0, unit="%",
                   low_is_good=False),
        ]  # fmt: skip
    for name, model, goal in (("default", DEFAULT, 10.0), ("20 % outliers", STRESS["20 % outliers"], 30.0)):
        chance = _simulate(plan, model, Scenario(size=0.0))
        figures.append(
            Figure(name=f"anomalies: run off by chance, confirmed, {name}", value=_share(chance, Repeat.CONFIRMED),
                   goal=goal, unit="%", notes=(_render(chance),))
        )  # fmt: skip
    return figures


def _simulate(plan: Plan, model: NoiseModel, scenario: Scenario) -> Counter[Repeat | None]:
    """What became of the seventh run of the environment ahead, None where it did not look wrong; of size 0 of any."""
    rng = np.random.default_rng([SEED, round(100 * scenario.size)])
    logs = draw_blocks(rng, draw_machines(rng, model, STUDIES), len(plan.blocks))
    logs[1] += AHEAD
    last = len(plan.blocks) if scenario.stays else DECIDED
    logs[1, :, DECIDED - 1 : last] += math.log1p(-scenario.size)
    outcomes: Counter[Repeat | None] = Counter()
    for study in range(STUDIES):
        found = find_anomalies(plan, _measure(plan, logs[:, study]))
        ours = [one for one in found if one.environment == "ahead"]
        if scenario.size:
            seventh = (one.outcome for one in ours if one.blocks == (DECIDED,))
            outcomes[next(seventh, None)] += 1
        else:
            outcomes.update(one.outcome for one in ours)
    return outcomes


def _measure(plan: Plan, logs: Floats) -> list[RunRecord]:
    """The runs as the loop makes them, of ln(tps) of shape (environments, blocks): each block holds what is wanted."""
    (cell,) = plan.experiment.cells
    names = [each.name for each in plan.experiment.environments]
    wanted = frozenset((name, cell.identity) for name in names)
    made: list[RunRecord] = []
    for block in range(1, len(plan.blocks) + 1):
        if block > DECIDED:
            wanted = wanted_pairs(plan, made, block)
        if not wanted:
            break
        made += [
            _run(block, name, cell.identity, math.exp(values[block - 1]))
            for name, values in zip(names, logs, strict=True)
            if (name, cell.identity) in wanted
        ]
    return made


def _run(block: int, environment: str, cell: str, tps: float) -> RunRecord:
    return RunRecord(
        identity=f"{block}-{environment}", block=block, environment=environment, cell=cell, status=RunStatus.COMPLETED,
        validity=Validity.VALID, reasons=(), started=f"2026-01-01T00:00:{block:02}+00:00", measured_seconds=60.0,
        measurements=(Measurement(metric="tps", value=tps),), series=(), dead_time={},
    )  # fmt: skip


def _share(outcomes: Counter[Repeat | None], repeat: Repeat) -> float:
    """Percent of those that looked wrong."""
    seen = sum(outcomes[each] for each in Repeat)
    return 100 * outcomes[repeat] / seen if seen else math.nan


def _render(outcomes: Counter[Repeat | None]) -> str:
    seen = sum(outcomes[each] for each in Repeat)
    shares = ", ".join(f"{repeat} {_share(outcomes, repeat):.1f} %" for repeat in Repeat)
    missed = f" of {seen + outcomes[None]}" if outcomes[None] else ""
    return f"{shares}, of {seen}{missed} that looked wrong in {STUDIES} studies"
