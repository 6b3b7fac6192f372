"""Percentiles of latency from the sampled log against those of the full log of the same run.

Runs are made with a log of all transactions. A sampled log is drawn from it as pgbench draws one, each transaction with
the probability that pgstrata would have chosen for that throughput.
"""

from __future__ import annotations

import gzip
import math
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final
from unittest import mock

import numpy as np
import numpy.typing as npt
from figures import Figure
from observer import Silence

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.conduct import preflight
from pgstrata.drivers.pgbench.parse import TRANSACTIONS
from pgstrata.drivers.pgbench.transactions import TransactionLatencies, parse_transactions
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

SEED: Final = 20261125
DRAWS: Final = 200
GOALS: Final = {0.5: 2.0, 0.95: 2.0, 0.99: 5.0}
"""Largest error in percent, by quantile."""
INSIDE: Final = 95.0
EXPERIMENT: Final = """
question = "How far off are percentiles of a sampled log?"
blocks = {blocks}
interleave = "runs"
diagnosis = false
controls = ["same"]
[[environments]]
name = "one"
server = "18"
[[cells]]
workload = "select-only"
scale = 10
clients = 4
run = "60s"
[[cells]]
workload = "simple-update"
scale = 10
clients = 4
run = "60s"
"""


def measure_percentiles() -> Iterator[Figure]:
    """The error that 95 of 100 drawn logs keep within, by quantile; ROUNDS (1 unless given) are pairs of runs."""
    errors: dict[float, list[float]] = {quantile: [] for quantile in GOALS}
    notes = []
    rng = np.random.default_rng(SEED)
    for cell, full, rate in _full_logs(int(os.environ.get("ROUNDS") or 1)):
        own = {quantile: list(_errors(rng, full, rate, quantile)) for quantile in GOALS}
        within = ", ".join(f"p{100 * quantile:g} {_reach(found):.2f} %" for quantile, found in own.items())
        notes.append(f"{cell}: {full.samples:,} transactions, 1 in {1 / rate:g} logged: {within}")
        for quantile, found in own.items():
            errors[quantile] += found
    for place, (quantile, goal) in enumerate(GOALS.items()):
        said = notes if place == 0 else ()
        name = f"percentiles: error of p{100 * quantile:g} in 95 of 100"
        yield Figure(name=name, value=_reach(errors[quantile]), goal=goal, unit="%", notes=said)


def _full_logs(blocks: int) -> Iterator[tuple[str, TransactionLatencies, float]]:
    """Of each run its cell, all its latencies, and the rate of the log that pgstrata would have asked for."""
    usual = preflight.LOG_LINES_PER_SECOND
    with tempfile.TemporaryDirectory() as name, mock.patch.object(preflight, "LOG_LINES_PER_SECOND", math.inf):
        file, folder = Path(name) / "question.toml", Path(name) / "study"
        file.write_text(EXPERIMENT.format(blocks=blocks))
        run_experiment(replace(load_plan(file), floors={}), StudyFolder(folder), Silence(), stop_early=False)
        for run in load_study(folder).runs:
            packed = next(folder.glob(f"evidence/{run.identity}/**/{TRANSACTIONS}"))
            full = parse_transactions(gzip.decompress(packed.read_bytes()))
            rate = 1.0
            while rate * full.samples / run.measured_seconds > usual:
                rate /= 2
            yield run.cell, full, rate


def _errors(rng: np.random.Generator, full: TransactionLatencies, rate: float, quantile: float) -> Iterator[float]:
    """Error in percent of each drawn log that has enough transactions for the quantile."""
    true = full.quantiles()[quantile]
    for _ in range(DRAWS):
        kept: npt.NDArray[np.bool_] = rng.random(full.samples) < rate
        drawn = TransactionLatencies(microseconds=full.microseconds[kept]).quantiles()
        if quantile in drawn:
            yield 100 * abs(drawn[quantile] / true - 1)


def _reach(errors: list[float]) -> float:
    return float(np.percentile(errors, INSIDE)) if errors else math.inf
