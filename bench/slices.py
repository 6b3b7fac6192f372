"""Slices of several lengths, and whole runs, on the same known truth: what each is worth, and whether they agree."""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from figures import Figure
from live import WORK, Question, by_block, percent, visit_difference
from observer import Silence

from pgstrata.app.run import run_experiment
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.plan.identity import identify
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.05)
SECONDS = 12.0
VISITS = 2


def measure_slices(workload: str = "select-only", work: int = WORK[5]) -> Sequence[Figure]:
    """A load slowed by a known amount and two equal ones, in slices of each length."""
    rows, centres = [], {}
    for length in LENGTHS:
        plan, runs = _measure(workload, work, length)
        blocks = by_block(runs)
        equal = [_round_differences(block["plain"], block["equal"]) for block in blocks.values()]
        slow = [visit_difference(block["plain"], block["slow"]) for block in blocks.values()]
        spread = statistics.stdev([d for visit in equal for d in visit])
        robust = 1.4826 * float(np.median(np.abs([d for visit in equal for d in visit])))
        centres[length] = percent(statistics.fmean(slow))
        error = robust * math.sqrt(math.pi / 2) / math.sqrt(60 / (2 * length))
        logged = statistics.median(
            statistics.median(run.rounds()) / (run.value("tps") or math.nan)
            for run in runs
            if run.environment == "plain"
        )
        rows.append(
            f"{workload} {1000 * length:5.0f} ms: pair SD {100 * spread:.2f} % (robust {100 * robust:.2f}), median's "
            f"error per 60 s {100 * error:.2f} %, slow {centres[length]:+.2f} %, logged / unlogged {logged:.3f}, "
            f"{len(plan.blocks)} visits"
        )
    worst = max(abs(centres[length] - centres[LENGTHS[0]]) for length in LENGTHS)
    return [Figure(name=f"slices: lengths disagree at most, {workload}", value=worst, goal=1.0, unit="%", notes=rows)]


def _measure(workload: str, work: int, length: float) -> tuple[Plan, Sequence[RunRecord]]:
    question = Question(
        arms={"equal": 0, "slow": work}, workload=workload, blocks=VISITS, interleave="slices", seed=int(1000 * length)
    )
    with tempfile.TemporaryDirectory() as name:
        plan = question.plan(Path(name))
        designs = tuple(replace(each, slice_seconds=length, rounds=round(SECONDS / length)) for each in plan.designs)
        plan = replace(plan, designs=designs, identity=identify(plan.experiment, designs))
        run_experiment(plan, StudyFolder(Path(name) / "study"), Silence(), stop_early=False)
        return plan, load_study(Path(name) / "study", series=True).runs


def _round_differences(one: RunRecord, other: RunRecord) -> list[float]:
    return [math.log(b / a) for a, b in zip(one.rounds(), other.rounds(), strict=True) if a > 0 and b > 0]
