"""Measure what the bank lacks, what has the fewest visits first, and put each visit into the data files.

Each kind of a condition has studies of its own below the folder of the bank, one after the other, since a plan ends
with its horizon. They grow by a few visits in each turn, on the production path, as by `pgstrata run --blocks`. Kinds
with equally many visits alternate in random order, so that all see the same hours. A kill loses the visit in flight:
what is in a study and not in the data file yet is put there by the next call.
"""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bank.conditions import Task
from bank.visits import METRICS, Visit, keep_visits, load_visits
from loops import busy

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.compare.pairing.arms import sort_runs
from pgstrata.compare.pairing.pairs import pair_metric
from pgstrata.compare.verdicts.judging import ask
from pgstrata.errors import HostNotFitError, InterruptedByUserError, PgstrataError
from pgstrata.model.metrics import BACKGROUND_LOAD, COMPARED_SERIES
from pgstrata.model.plan import HORIZON
from pgstrata.model.runs import RunRecord
from pgstrata.model.study import Study
from pgstrata.ports.events import Event, EventKind
from pgstrata.store.repository import StudyFolder

# Visits of a kind before it is the turn of the next.
PORTION: Final = 3
_EXPERIMENT, _STUDY, _TIMES = "experiment.toml", "study", "times.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bank:
    """`folder` holds the studies, `data` the data files; `commit` is that of the code that measures."""

    folder: Path
    data: Path
    commit: str

    def file(self, task: Task) -> Path:
        """The data file of its condition."""
        return self.data / f"{task.condition.name}.csv"

    def have(self, task: Task) -> int:
        """Visits of that kind in the data file that have rounds enough."""
        return self.counts([task])[task]

    def counts(self, tasks: Collection[Task]) -> Mapping[Task, int]:
        """Visits of each in the data files, which are read once."""
        files = {file: load_visits(file) for file in {self.file(task) for task in tasks}}
        return {task: sum(map(task.takes, files[self.file(task)])) for task in tasks}

    def studies(self, task: Task) -> Sequence[Path]:
        """Folders of its studies, the oldest first; none whose environments were other ones than they are now."""
        found = sorted(each.parent for each in (self.folder / task.condition.name / task.kind).glob(f"*/{_EXPERIMENT}"))
        return [each for each in found if (each / _EXPERIMENT).read_text() == _experiment_of(task, each.name)]


def record(bank: Bank, tasks: Sequence[Task], seconds: float) -> None:
    """Measure for so long, and stop at the next visit; earlier where nothing is missing any more.

    A kind that cannot be measured, or whose visits may not enter a comparison, is left out of this call.

    Raises:
        HostNotFitError: something else is being measured on this host, or it was left changed.
        InterruptedByUserError: Ctrl-C.
    """
    until = time.monotonic() + seconds
    for each in tasks:
        for folder in bank.studies(each):
            _keep(bank, each, folder)
    failed = set[Task]()
    while (task := choose_task(bank.counts(tasks), failed)) is not None:
        before = bank.have(task)
        try:
            if not _measure_portion(bank, task, until - time.monotonic()):
                return
        except (InterruptedByUserError, HostNotFitError):
            raise
        except PgstrataError as error:
            print(f"    {task.condition.name} {task.kind}: {error}", flush=True)
            failed.add(task)
        if bank.have(task) == before:
            failed.add(task)


def choose_task(counts: Mapping[Task, int], without: Collection[Task]) -> Task | None:
    """One of those with the fewest visits, by lot; None where nothing is missing."""
    missing = [task for task, count in counts.items() if count < task.visits and task not in without]
    return min(missing, key=lambda task: (counts[task], random.random()), default=None)


def _measure_portion(bank: Bank, task: Task, seconds: float) -> bool:
    """A few visits more of one kind; False where the time is not enough for one."""
    if seconds <= 0:
        return False
    folder = _current(bank, task)
    study, times = StudyFolder(folder / _STUDY), folder / _TIMES
    done = len(study.committed()) // 2 if study.begun() else 0
    blocks = min(HORIZON, done + min(PORTION, task.visits - bank.have(task)))
    plan = replace(load_plan(folder / _EXPERIMENT, blocks=blocks), floors={})
    kept: list[Visit] = []
    with beside(task.condition.side):
        clock = VisitClock(times, lambda: kept.extend(_keep(bank, task, folder)))
        outcome = run_experiment(plan, study, clock, budget=seconds, stop_early=False)
        clock.finish(outcome.preparing)
    kept += _keep(bank, task, folder)
    said = " ".join(f"{100 * visit.tps:+.2f} %" for visit in kept)
    print(f"    {task.condition.name} {task.kind}: {bank.have(task)} of {task.visits} visits; {said}", flush=True)
    return outcome.measured > 0


def _current(bank: Bank, task: Task) -> Path:
    """The study to go on with: the last one, unless it is full or was begun by other code."""
    studies = bank.studies(task)
    if studies and studies[-1].name.endswith(f"-{bank.commit}"):
        study = StudyFolder(studies[-1] / _STUDY)
        if not study.begun() or len(study.committed()) < 2 * HORIZON:
            return studies[-1]
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{bank.commit}"
    folder = bank.folder / task.condition.name / task.kind / name
    folder.mkdir(parents=True)
    (folder / _EXPERIMENT).write_text(_experiment_of(task, name))
    return folder


def _experiment_of(task: Task, name: str) -> str:
    """The experiment of a study of that name."""
    return task.experiment(random.Random(name).randrange(2**31))


class VisitClock:
    """Events of a study as lines: when each block ended, in seconds of this call, and what the call took beside.

    `keep` is called after each block; its seconds are those of no visit.
    """

    def __init__(self, file: Path, keep: Callable[[], None]) -> None:
        self._file, self._keep = file, keep
        self._begun = time.monotonic()
        # tells this call from one before it that was killed
        self._write(ended=0.0)

    def emit(self, event: Event) -> None:
        if event.kind is EventKind.BLOCK_FINISHED:
            self._write(block=int(event.text), ended=self._now(), load=round(os.getloadavg()[0], 2))
            begun = time.monotonic()
            self._keep()
            self._begun += time.monotonic() - begun

    def finish(self, preparing: float) -> None:
        """The call is over; `preparing` were its seconds before the first block."""
        self._write(preparing=round(preparing, 3), ended=self._now())

    def _now(self) -> float:
        return round(time.monotonic() - self._begun, 3)

    def _write(self, **line: float) -> None:
        with self._file.open("a") as out:
            # a line that was broken off ends where this one begins
            out.write("\n" + json.dumps(line))


def read_times(file: Path) -> Mapping[int, Mapping[str, float]]:
    """By block: `seconds`, `load`, and `preparing` with the first of a call.

    The first visit of a call that was killed has no seconds, because nobody knows what was spent before it.
    """
    found: dict[int, dict[str, float]] = {}
    calls: list[list[dict[str, Any]]] = [[]]
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue  # broken off
        if calls[-1] and (row["ended"] < calls[-1][-1]["ended"] or not row["ended"]):
            calls.append([])
        calls[-1].append(row)
    for call in calls:
        blocks = [row for row in call if "block" in row]
        ends = [row for row in call if "preparing" in row]
        before = ends[-1]["preparing"] if ends else math.nan
        around = before + (ends[-1]["ended"] - blocks[-1]["ended"]) if ends and blocks else math.nan
        for row in blocks:
            found[row["block"]] = {"seconds": row["ended"] - before, "load": row["load"], "preparing": around}
            before, around = row["ended"], math.nan
    return found


def _keep(bank: Bank, task: Task, folder: Path) -> Sequence[Visit]:
    """Put the visits of a study into the data file; those that were not there are returned."""
    study = StudyFolder(folder / _STUDY)
    if not study.begun():
        return ()
    loaded = study.load(metrics=METRICS, series=COMPARED_SERIES)
    return keep_visits(bank.file(task), extract(loaded, task.kind, folder.name, read_times(folder / _TIMES)))


def extract(study: Study, kind: str, name: str, times: Mapping[int, Mapping[str, float]]) -> Sequence[Visit]:
    """The visits of a study whose runs may enter a comparison: its first environment against the baseline.

    Args:
        study: with the metrics of a visit, and the series that comparisons need.
        kind: what its pair is.
        name: TIME-COMMIT.
        times: as `read_times` finds them.
    """
    stamp, _, commit = name.partition("-")
    experiment = study.plan.experiment
    cell, base = experiment.cells[0].identity, experiment.baseline
    other_name = next(each.name for each in experiment.environments if each.name != base)
    arms = sort_runs(study.runs, frozenset(METRICS))
    pairings = [pair_metric(arms, ask(study.plan, metric), other_name, cell) for metric in METRICS]
    differences = [dict(zip(each.blocks, each.differences.tolist(), strict=True)) for each in pairings]
    levels = dict(zip(pairings[0].blocks, pairings[0].base_levels.tolist(), strict=True))
    runs = {(run.block, run.environment): run for run in study.runs if run.cell == cell}
    visits = []
    for block in sorted(differences[0]):
        plain, other, known = runs[block, base], runs[block, other_name], times.get(block, {})
        visits.append(
            Visit(
                kind=kind,
                study=stamp,
                block=block,
                started=datetime.fromisoformat(plain.started).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                commit=commit,
                seconds=known.get("seconds", math.nan),
                preparing=known.get("preparing", math.nan),
                load=known.get("load", math.nan),
                background=max(run.value(BACKGROUND_LOAD) or 0.0 for run in (plain, other)),
                level=levels[block],
                d=tuple(each.get(block, math.nan) for each in differences),
                rounds=_rounds(plain, other),
            )
        )
    return visits


def _rounds(plain: RunRecord, other: RunRecord) -> tuple[float, ...]:
    pairs = zip(plain.rounds(), other.rounds(), strict=True)
    return tuple(math.log(b / a) for a, b in pairs if a > 0 and b > 0)


def beside(side: str) -> AbstractContextManager[None]:
    """A loop that never rests beside what is measured, where that is to be busy."""
    return busy(1 if side == "busy" else 0)
