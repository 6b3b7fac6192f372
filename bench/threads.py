"""Threads of the client: one per client against one per CPU, by the scatter of equal environments between visits."""

from __future__ import annotations

import math
import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from figures import Figure
from live import visit_difference
from observer import Silence

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.model.runs import RunRecord
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

VISITS = 16
CLIENTS_PER_CPU = 2
EXPERIMENT = """
question = "How many threads should a client have?"
blocks = {visits}
interleave = "slices"
[[environments]]
name = "one"
server = "embedded"
[[environments]]
name = "other"
server = "embedded"
settings.random_page_cost = 1.2
"""
CELL = """
[[cells]]
workload = "select-only"
scale = 10
clients = {clients}
threads = {threads}
run = "5s"
"""


def measure_threads() -> Sequence[Figure]:
    """The ratio of the scatters, with levels and scatters beside it; both counts in every block."""
    cpus = len(os.sched_getaffinity(0))
    clients = CLIENTS_PER_CPU * cpus
    few, many = (_cell(clients, threads) for threads in (cpus, clients))
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "question.toml"
        file.write_text(EXPERIMENT.format(visits=VISITS) + few + many)
        plan = replace(load_plan(file), floors={})
        run_experiment(plan, StudyFolder(Path(name) / "study"), Silence(), stop_early=False)
        runs = load_study(Path(name) / "study", series=True).runs
    spreads, notes = [], []
    for cell in plan.experiment.cells:
        own = [run for run in runs if run.cell == cell.identity]
        differences, levels = _differences(own), [statistics.median(run.rounds()) for run in own if run.rounds()]
        spreads.append(statistics.stdev(differences))
        notes.append(
            f"{cell.clients} clients, {cell.threads} threads: {statistics.median(levels):,.0f} tps, SD of ln tps "
            f"between visits {100 * statistics.stdev(map(math.log, levels)):.1f} %, of D {100 * spreads[-1]:.1f} %"
        )
    return [Figure(name="threads: scatter with one per client", value=spreads[1] / spreads[0], goal=1.0, notes=notes)]


def _cell(clients: int, threads: int) -> str:
    return CELL.format(clients=clients, threads=threads)


def _differences(runs: Sequence[RunRecord]) -> list[float]:
    blocks: dict[int, dict[str, RunRecord]] = {}
    for run in runs:
        blocks.setdefault(run.block, {})[run.environment] = run
    return [visit_difference(block["one"], block["other"]) for block in blocks.values() if len(block) > 1]
