"""Sessions free against paired with CPUs: how much equal environments scatter, and whether known loads come out alike.

    ONLY=placement make bench
    KEEP=FOLDER VISITS=24 CLIENTS=2,4,16 SIDES=quiet,busy ONLY=placement make bench

Each block visits each number of clients, free and paired, with three arms in slices: plain, equal, and slowed by known
work. `busy` has a loop beside it that never rests, as long as that side is measured. With KEEP the studies stay, and
are gone on with; only what is missing is measured.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from figures import Figure
from live import WORK, know, percent, visit_difference
from observer import Silence

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.model.experiment import Cell
from pgstrata.model.runs import RunRecord
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

PLACEMENTS = ("free", "paired")
EXPERIMENT = """
question = "How much do equal environments scatter?"
blocks = {visits}
seed = {seed}
interleave = "slices"
[[environments]]
name = "plain"
server = "embedded"
options.extra_work = 0
[[environments]]
name = "equal"
server = "embedded"
options.extra_work = 0
settings.random_page_cost = 1.2
[[environments]]
name = "slow"
server = "embedded"
options.extra_work = {work}
"""
CELL = """
[[cells]]
workload = "{workload}"
scale = 16
clients = {clients}
run = "5s"
placement = "{placement}"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """What the visits of one cell say; differences in log units, of throughput."""

    equal: Sequence[float]
    slow: Sequence[float]
    rounds: float
    tps: Sequence[float]

    @property
    def spread(self) -> float:
        """Robust standard deviation of the differences of equal arms, percent."""
        return 100 * 1.4826 * statistics.median(map(abs, self.equal))

    @property
    def ordinary(self) -> float:
        """Their standard deviation about zero, percent."""
        return 100 * math.sqrt(statistics.fmean(d * d for d in self.equal))

    def say(self) -> str:
        known = know(self.slow)
        level = statistics.median(self.tps)
        cv = 100 * statistics.stdev(self.tps) / statistics.fmean(self.tps)
        return (
            f"SD of D {self.ordinary:5.2f} % (robust {self.spread:5.2f}), between rounds {100 * self.rounds:5.2f} %, "
            f"equal {percent(statistics.median(self.equal)):+.2f} %, slow {known}, {level:,.0f} tps (CV {cv:.0f} %), "
            f"{len(self.equal)} visits"
        )


def measure_placement() -> Sequence[Figure]:
    """Ratios of the scatters, paired to free, with everything seen beside them."""
    visits = int(os.environ.get("VISITS", "24"))
    clients = [int(word) for word in os.environ.get("CLIENTS", "2,4,16").split(",")]
    workload = os.environ.get("WORKLOAD", "select-only")
    figures = []
    for side in os.environ.get("SIDES", "quiet,busy").split(","):
        with _kept(f"{workload}-{side}") as folder, _beside(side):
            cells, runs = _measure(folder, workload, clients, visits)
        found = {(cell.clients, str(cell.placement)): scatter_of(runs, cell) for cell in cells}
        for number in clients:
            free, paired = (found[number, placement] for placement in PLACEMENTS)
            notes = [f"{name}: {each.say()}" for name, each in zip(PLACEMENTS, (free, paired), strict=True)]
            name = f"placement: SD paired / free, {workload}, {number} clients, {side}"
            figures.append(Figure(name=name, value=paired.ordinary / free.ordinary, goal=1.0, notes=notes))
    return figures


def scatter_of(runs: Sequence[RunRecord], cell: Cell) -> Scatter:
    """What the visits of a cell say."""
    blocks: dict[int, dict[str, RunRecord]] = {}
    for run in runs:
        if run.cell == cell.identity and run.rounds():
            blocks.setdefault(run.block, {})[run.environment] = run
    whole = [block for block in blocks.values() if len(block) == len(("plain", "equal", "slow"))]
    return Scatter(
        equal=[visit_difference(block["plain"], block["equal"]) for block in whole],
        slow=[visit_difference(block["plain"], block["slow"]) for block in whole],
        rounds=statistics.median(_round_spread(block["plain"], block["equal"]) for block in whole),
        tps=[statistics.median(block["plain"].rounds()) for block in whole],
    )


def _round_spread(one: RunRecord, other: RunRecord) -> float:
    """Standard deviation of the log ratios of the rounds of one visit."""
    pairs = zip(one.rounds(), other.rounds(), strict=True)
    return statistics.stdev(math.log(b / a) for a, b in pairs if a > 0 and b > 0)


def _measure(
    folder: Path, workload: str, clients: Sequence[int], visits: int
) -> tuple[Sequence[Cell], Sequence[RunRecord]]:
    file = folder / "placement.toml"
    cells = [
        CELL.format(workload=workload, clients=number, placement=placement)
        for number in clients
        for placement in PLACEMENTS
    ]
    file.write_text(EXPERIMENT.format(visits=visits, work=WORK[5], seed=visits) + "".join(cells))
    plan = replace(load_plan(file), floors={})
    run_experiment(plan, StudyFolder(folder / "study"), Silence(), stop_early=False)
    return plan.experiment.cells, load_study(folder / "study", series=True).runs


@contextmanager
def _kept(name: str) -> Iterator[Path]:
    if keep := os.environ.get("KEEP"):
        folder = Path(keep) / name
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary)


@contextmanager
def _beside(side: str) -> Iterator[None]:
    """A loop that never rests beside what is measured, where that is to be busy."""
    if side != "busy":
        yield
        return
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


if __name__ == "__main__":
    for figure in measure_placement():
        print(figure.line(), *figure.notes, sep="\n    ")
