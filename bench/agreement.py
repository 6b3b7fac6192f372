"""Slices against runs: the same servers and the same truth measured both ways, a known load and three majors."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from figures import Figure
from live import ENVIRONMENT, by_block, percent, visit_difference
from observer import Silence

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.stats.rule import Estimate, estimate_many
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

WORK = {"select-only": 1250, "simple-update": 30000}
VISITS = {"slices": 8, "runs": 14}
ARMS = ("slow", "17", "16")
EXPERIMENT = """
question = "Do slices and runs agree?"
blocks = {blocks}
seed = {seed}
interleave = "{interleave}"
{environments}
[[cells]]
workload = "{workload}"
scale = 10
clients = 2
run = "5s"
"""


def measure_agreement() -> list[Figure]:
    """Per workload how far the two estimates of an arm lie apart, in units of what their intervals allow."""
    return [_compare(workload) for workload in WORK]


def _compare(workload: str) -> Figure:
    found = {interleave: _estimate(workload, interleave) for interleave in VISITS}
    notes, worst = [], 0.0
    for arm in ARMS:
        slices, runs = (found[interleave][0][arm] for interleave in ("slices", "runs"))
        apart = abs(slices.centre - runs.centre) / math.hypot(_half(slices), _half(runs))
        worst = max(worst, apart)
        notes.append(f"{arm} against 18: slices {_say(slices)}, runs {_say(runs)}: {apart:.2f}")
    minutes = ", ".join(f"{name} {took / 60:.1f} min" for name, (_, took) in found.items())
    return Figure(name=f"slices against runs, {workload}", value=worst, goal=1.0, notes=(*notes, minutes))


def _estimate(workload: str, interleave: str) -> tuple[Mapping[str, Estimate], float]:
    """Estimates by arm, and the seconds that the study took."""
    servers = {"18": "18", "slow": "18", "17": "17", "16": "16"}
    environments = "".join(
        ENVIRONMENT.format(name=name, server=server, work=WORK[workload] if name == "slow" else 0)
        for name, server in servers.items()
    )
    text = EXPERIMENT.format(
        blocks=VISITS[interleave], seed=len(workload), interleave=interleave, environments=environments,
        workload=workload,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "question.toml"
        file.write_text(text)
        plan = replace(load_plan(file), floors={})
        begun = time.monotonic()
        run_experiment(plan, StudyFolder(Path(name) / "study"), Silence(), stop_early=False)
        took = time.monotonic() - begun
        blocks = by_block(load_study(Path(name) / "study", series=True).runs).values()
    samples = [np.array([visit_difference(block["18"], block[arm]) for block in blocks]) for arm in ARMS]
    return dict(zip(ARMS, estimate_many(samples), strict=True)), took


def _half(estimate: Estimate) -> float:
    """Half the width of the interval, in log units."""
    assert estimate.interval is not None
    return (estimate.interval.high - estimate.interval.low) / 2


def _say(estimate: Estimate) -> str:
    assert estimate.interval is not None
    low, high = percent(estimate.interval.low), percent(estimate.interval.high)
    return f"{percent(estimate.centre):+.2f} % [{low:+.2f}, {high:+.2f}]"
