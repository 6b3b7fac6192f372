"""Slices against runs: the same servers and the same truth measured both ways, a known load and three majors.

`agreement-writing` asks the known load alone, for long enough to say that the two agree within 2 %: half an hour run by
run, and a fifth of that in slices. RUN_MINUTES=5 asks for less.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from figures import Figure
from live import ENVIRONMENT, Known, by_block, know, percent, visit_difference
from observer import Silence

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.stats.rule import Estimate, estimate_many
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

WORK = {"select-only": 1250, "simple-update": 30000}
VISITS = {"slices": 8, "runs": 14}
ARMS = ("slow", "17", "16")
RUN_MINUTES = 30.0
# Visits of one study of known work; studies follow each other until the time is over.
BLOCKS = 24
AGREED_PERCENT = 2.0
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


def measure_agreement_writing() -> Iterator[Figure]:
    """How far slices and runs can lie apart on work of a known amount, in percent: the far end of the interval."""
    minutes = float(os.environ.get("RUN_MINUTES") or RUN_MINUTES)
    runs, slices = (
        _know(interleave, limit) for interleave, limit in (("runs", 60 * minutes), ("slices", 12 * minutes))
    )
    apart = slices.change - runs.change
    half = math.hypot(*((each.high - each.low) / 2 for each in (slices, runs)))
    yield Figure(
        name="slices less runs, simple-update: at most",
        value=abs(apart) + half,
        goal=AGREED_PERCENT,
        unit="%",
        notes=(f"{apart:+.2f} % [{apart - half:+.2f}, {apart + half:+.2f}]", f"slices {slices}, runs {runs}"),
    )


def _know(interleave: str, seconds: float) -> Known:
    """The known work against none, measured one way for so long."""
    differences: list[float] = []
    begun = time.monotonic()
    for seed in itertools.count(1):
        differences += _measure("simple-update", interleave, ("slow",), BLOCKS, seed)["slow"]
        print(f"    {interleave}: {len(differences)} visits, {know(differences)}", flush=True)
        if time.monotonic() - begun >= seconds:
            return know(differences)
    raise AssertionError


def _estimate(workload: str, interleave: str) -> tuple[Mapping[str, Estimate], float]:
    """Estimates by arm, and the seconds that the study took."""
    begun = time.monotonic()
    found = _measure(workload, interleave, ARMS, VISITS[interleave], len(workload))
    took = time.monotonic() - begun
    return dict(zip(ARMS, estimate_many([np.array(found[arm]) for arm in ARMS]), strict=True)), took


def _measure(
    workload: str, interleave: str, arms: Sequence[str], blocks: int, seed: int
) -> Mapping[str, Sequence[float]]:
    """The difference of each arm from 18 in each visit, as a logarithm."""
    servers = {"18": "18", "slow": "18", "17": "17", "16": "16"}
    environments = "".join(
        ENVIRONMENT.format(name=name, server=servers[name], work=WORK[workload] if name == "slow" else 0)
        for name in ("18", *arms)
    )
    text = EXPERIMENT.format(
        blocks=blocks, seed=seed, interleave=interleave, environments=environments, workload=workload
    )
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "question.toml"
        file.write_text(text)
        plan = replace(load_plan(file), floors={})
        run_experiment(plan, StudyFolder(Path(name) / "study"), Silence(), stop_early=False)
        visits = by_block(load_study(Path(name) / "study", series=True).runs).values()
    return {arm: [visit_difference(block["18"], block[arm]) for block in visits] for arm in arms}


def _half(estimate: Estimate) -> float:
    """Half the width of the interval, in log units."""
    assert estimate.interval is not None
    return (estimate.interval.high - estimate.interval.low) / 2


def _say(estimate: Estimate) -> str:
    assert estimate.interval is not None
    low, high = percent(estimate.interval.low), percent(estimate.interval.high)
    return f"{percent(estimate.centre):+.2f} % [{low:+.2f}, {high:+.2f}]"
