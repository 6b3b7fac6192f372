"""Whole studies, each stopped when it is decided, as a user makes them: a line for each in a data file."""

from __future__ import annotations

import csv
import io
import itertools
import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bank.conditions import QUESTIONS, Condition, Question, Task
from bank.record import beside
from figures import commit_of_source
from live import Known, ratio_of
from observer import Silence

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.compare import compare_study
from pgstrata.model.plan import HORIZON
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

STUDIES: Final = Path(__file__).with_name("studies.csv")
HEAD: Final = ("condition", "question", "started", "commit", "verdict", "blocks", "seconds", "change", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStudy:
    """What a study came to; `seconds` are those of the whole call, `question` the name of what was asked."""

    condition: Condition
    question: str
    started: str
    commit: str
    verdict: str
    blocks: int
    seconds: float
    known: Known | None


def record_studies(file: Path, tasks: Sequence[Task], number: int, seconds: float) -> None:
    """Make studies until each question of the tasks has so many; none is begun after the time is over.

    Questions with the fewest studies come first.
    A study that is interrupted is not counted.
    """
    until = time.monotonic() + seconds
    asked = [(task, each) for task, each in itertools.product(tasks, QUESTIONS) if _fits(task, each)]
    while time.monotonic() < until:
        made = Counter((study.condition, study.question) for study in load_studies(file))
        counts = {(task, each): made[task.condition, each.name] for task, each in asked}
        if not counts or min(counts.values()) >= number:
            return
        task, question = min(counts, key=lambda place: (counts[place], random.random()))
        study = _make(task, question)
        _append(file, study)
        print(f"    {task.condition.name}, {question.name}: {study.verdict}, {study.seconds / 60:.1f} min", flush=True)


def _fits(task: Task, question: Question) -> bool:
    return (task.condition.workload, task.kind) == (question.workload, question.kind)


def _make(task: Task, question: Question) -> LiveStudy:
    started = datetime.now(UTC)
    with tempfile.TemporaryDirectory() as name, beside(task.condition.side):
        file, folder = Path(name) / "experiment.toml", Path(name) / "study"
        file.write_text(task.experiment(random.randrange(2**31), question.threshold))
        plan = replace(load_plan(file, blocks=HORIZON), floors={})
        begun = time.monotonic()
        run_experiment(plan, StudyFolder(folder), Silence())
        seconds = time.monotonic() - begun
        found = compare_study(plan, load_study(folder, series=True).runs)
    (headline,) = [each for each in found if each.metric == "tps" and not each.exploratory]
    return LiveStudy(
        condition=task.condition,
        question=question.name,
        started=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        commit=commit_of_source(),
        verdict=str(headline.verdict),
        blocks=headline.blocks,
        seconds=seconds,
        known=ratio_of(headline),
    )


def load_studies(file: Path) -> Sequence[LiveStudy]:
    """All of them; a last line without its end is left out."""
    text = file.read_text() if file.exists() else ""
    return [_parse(row) for row in csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))]


def _parse(row: dict[str, str]) -> LiveStudy:
    known = [float(row[name]) for name in ("change", "low", "high") if row[name]]
    return LiveStudy(
        condition=Condition.of(row["condition"]),
        question=row["question"],
        started=row["started"],
        commit=row["commit"],
        verdict=row["verdict"],
        blocks=int(row["blocks"]),
        seconds=float(row["seconds"]),
        known=Known(change=known[0], low=known[1], high=known[2]) if len(known) == 3 else None,
    )


def _append(file: Path, study: LiveStudy) -> None:
    text = file.read_text() if file.exists() else ""
    known = study.known or Known(change=math.nan, low=math.nan, high=math.nan)
    numbers = (f"{value:.2f}" if math.isfinite(value) else "" for value in (known.change, known.low, known.high))
    cells = (study.condition.name, study.question, study.started, study.commit, study.verdict, str(study.blocks),
             f"{study.seconds:.1f}", *numbers)  # fmt: skip
    whole = text[: text.rfind("\n") + 1] or ",".join(HEAD) + "\n"
    file.write_text(whole + ",".join(cells) + "\n")
