"""Whether the right cause is named: known ones, each injected into one of two environments on real servers.

What must be found stands in `causes/table.toml`, written down beforehand. A kind is measured several times, each time
as a study of its own with another seed; `KINDS=jit,hot-row` and `SEEDS=1,2` make less of it. `same` is the plain
environment of a kind against itself: no cause may be named.

All of it takes an hour and a half. With `KEEP=FOLDER` the studies are kept there, and those that are there are not
measured again: so it may be measured in portions. Of kept evidence all is derived anew by the code as it is.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from figures import Figure, say_share
from observer import Silence

from pgstrata.app.answer import load_answer
from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.app.wiring import reparse
from pgstrata.collectors.pgstat.sampler import parse_counters
from pgstrata.diagnosis.queries import compare_plans
from pgstrata.model.answer import Answer
from pgstrata.model.attribution import Attribution, Contribution
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

FOLDER = Path(__file__).parent / "causes"
SEEDS = tuple(int(word) for word in (os.environ.get("SEEDS") or "1,2,3,4,5").split(","))
GOAL = 90.0
SAME = "same"
SAME_GOAL = 95.0
# Kinds whose plain environment is compared with itself: all of it is waiting, or all of it computing.
STILL = ("commit-wait", "extra-work", "small-cache", "hot-row")
MILLISECOND = 1e-3
LATENCY = "latency"
BACKGROUND = ("checkpointer_cpu", "walwriter_cpu", "bgwriter_cpu", "io_workers_cpu", "autovacuum_cpu")
CONTROL = 'controls = ["same"]\n'
PLAIN, INJECTED = "plain", "injected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The row of the table for one kind."""

    part: str
    query: str
    known: str | Sequence[float]
    event: str = ""
    mark: str = ""

    def is_named_by(self, row: Contribution) -> bool:
        same_part = row.part is not None and row.part.value == self.part
        return same_part and row.event == self.event and self.is_of(row)

    def is_of(self, row: Contribution) -> bool:
        return row.query.lower().startswith(self.query.lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one study has found.

    `first`: whether the cause that ranks first is the expected one with its mark, `said` what it is. `low` and `high`
    are the interval of what the known share is compared with, in seconds per transaction, where there is one, `row`
    says it. `known` is the mean over the blocks of what the other instrument says, None where it was asked for.
    """

    first: bool
    said: str
    row: str = ""
    low: float | None = None
    high: float | None = None
    known: float | None = None

    def covers(self, truth: tuple[float, float]) -> bool:
        return self.low is not None and self.high is not None and self.low <= truth[1] and truth[0] <= self.high


@dataclass(slots=True)
class Score:
    """How often a kind was found with its mark, and its share was right; `notes` say what was found."""

    first: int = 0
    covered: int = 0
    made: int = 0
    notes: list[str] = field(default_factory=list)


def measure_causes() -> Iterator[Figure]:
    """A line for each kind, then both shares over all kinds with their binomial intervals, then the control."""
    table = {name: Expected(**row) for name, row in tomllib.loads((FOLDER / "table.toml").read_text()).items()}
    wanted = os.environ.get("KINDS", "").split(",") if os.environ.get("KINDS") else [*table, SAME]
    total = Score()
    for kind in (name for name in table if name in wanted):
        if (lack := _lack(kind)) is not None:
            print(f"    {kind}: not measured, {lack}", flush=True)
            continue
        score = _measure_kind(kind, table[kind])
        for name in ("first", "covered", "made"):
            setattr(total, name, getattr(total, name) + getattr(score, name))
        yield Figure(
            name=f"causes: {kind} ranked first", value=_percent(score.first, score.made), goal=GOAL, unit="%",
            low_is_good=False, notes=(f"share right in {score.covered} of {score.made}", *score.notes),
        )  # fmt: skip
    if total.made:
        for name, count in (("ranked first", total.first), ("share right", total.covered)):
            yield Figure(name=f"causes: {name}, all", value=_percent(count, total.made), goal=GOAL, unit="%",
                         low_is_good=False, notes=(say_share(count, total.made),))  # fmt: skip
    if SAME in wanted:
        yield from _measure_same(table)


def _lack(kind: str) -> str | None:
    """What this machine has not that a kind needs."""
    library = Path("/usr/lib/postgresql/15/lib/llvmjit.so")
    return f"{library} is not there (Debian's postgresql-15)" if kind == "jit" and not library.exists() else None


@contextmanager
def _studied(name: str, make_plan: Callable[[Path], Plan]) -> Iterator[Path]:
    """A complete study of a plan: one that was kept, or else one that is measured now, and kept where that is wanted.

    What was not measured to its end is measured again.
    """
    with tempfile.TemporaryDirectory(prefix="pgstrata-causes-") as scratch:
        kept = Path(os.environ["KEEP"]) / name if os.environ.get("KEEP") else None
        if kept is not None and kept.exists():
            reparse(StudyFolder(kept))
            yield kept
            return
        study = Path(scratch) / "study"
        run_experiment(make_plan(Path(scratch)), StudyFolder(study), Silence(), stop_early=False)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(study, kept)
        yield kept or study


def _measure_kind(kind: str, expected: Expected) -> Score:
    found = [_measure(kind, seed, expected) for seed in SEEDS]
    values = [outcome.known for outcome in found if outcome.known is not None]
    truth = (min(expected.known), max(expected.known)) if not isinstance(expected.known, str) else _spread(values)
    known = f"known {truth[0]:.3g} to {truth[1]:.3g} s"
    return Score(
        first=sum(outcome.first for outcome in found),
        covered=sum(outcome.covers(truth) for outcome in found),
        made=len(found),
        notes=[f"{outcome.said}; the row itself {outcome.row}; {known}" for outcome in found],
    )


def _measure(kind: str, seed: int, expected: Expected) -> Outcome:
    with _studied(f"{kind}-{seed}", lambda _: load_plan(FOLDER / f"{kind}.toml", seed=seed)) as study:
        answer = load_answer(StudyFolder(study), why=True)
        known = list(_known_shares(study, expected))
    attribution = next((each for each in answer.attributions if each.environment == INJECTED), None)
    first = attribution.causes[0] if attribution and attribution.causes else None
    row = _row_of(expected, attribution) if attribution else None
    span = row.interval if row else None
    marked = _is_marked(answer, expected)
    return Outcome(
        first=first is not None and expected.is_named_by(first) and marked,
        said=_say(first) if marked else f"{_say(first)} without its mark, {expected.mark}",
        row=_say(row),
        low=span.low if span else None,
        high=span.high if span else None,
        known=mean(known) if known else None,
    )


def _is_marked(answer: Answer, expected: Expected) -> bool:
    """Whether plans of the statement are shown to differ, and where JIT is the cause, by JIT; or no mark is asked."""
    if not expected.mark:
        return True
    experiment = answer.study.plan.experiment
    compared = (
        compare_plans(answer.study.query_plans, environment=INJECTED, reference=PLAIN, cell=cell.identity)
        for cell in experiment.cells
    )
    changes = [
        change
        for plans in compared
        if plans is not None
        for difference in plans.differences
        if difference.plan.statement.lower().startswith(expected.query.lower())
        for change in difference.changes
    ]
    return "JIT is used" in changes if expected.mark == "jit" else bool(changes)


def _known_shares(study: Path, expected: Expected) -> Iterator[float]:
    """By block, in seconds per transaction: what the other instrument says, injected minus plain."""
    if not isinstance(expected.known, str):
        return
    runs = load_study(study, metrics=("server_cpu_per_tx", "transactions", "tps"), series=BACKGROUND).runs
    values = {(run.block, run.environment): _known(study, run, expected) for run in runs}
    for block in sorted({run.block for run in runs}):
        plain, injected = values.get((block, PLAIN)), values.get((block, INJECTED))
        if plain is not None and injected is not None:
            yield injected - plain


def _known(study: Path, run: RunRecord, expected: Expected) -> float | None:
    if expected.known == "cpu":
        return run.value("server_cpu_per_tx")
    if expected.known == "sessions":
        return _sessions_cpu(run)
    if expected.known == LATENCY:
        return next((one.seconds for one in run.statements if one.text.startswith(expected.query)), None)
    folder, transactions = study / "evidence" / run.identity, run.value("transactions")
    first, last = (parse_counters((folder / f"pgstat.{end}").read_bytes()) for end in ("before", "after"))
    name = str(expected.known)
    return (last[name] - first[name]) * MILLISECOND / transactions if transactions else None


def _sessions_cpu(run: RunRecord) -> float | None:
    """Seconds per transaction of the server's processes but those that work in the background."""
    whole, rate = run.value("server_cpu_per_tx"), run.value("tps")
    behind = sum(float(np.nanmean(series.values)) for series in run.series)
    return whole - behind / rate if whole is not None and rate else None


def _spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean with two standard errors to each side; without a second value the mean alone."""
    if not values:
        return math.nan, math.nan
    centre = mean(values)
    if len(values) == 1:
        return centre, centre
    error = math.sqrt(sum((value - centre) ** 2 for value in values) / (len(values) - 1) / len(values))
    return centre - 2 * error, centre + 2 * error


def _row_of(expected: Expected, attribution: Attribution) -> Contribution | None:
    """What the known share is compared with: the expected row, or the whole statement where that is known."""
    if expected.known == LATENCY:
        return next((row for row in attribution.queries if expected.is_of(row)), None)
    return next((row for row in attribution.rows if expected.is_named_by(row)), None)


def _say(row: Contribution | None) -> str:
    if row is None:
        return "no cause"
    span = f" [{row.interval.low:+.3g}, {row.interval.high:+.3g}]" if row.interval else ""
    part = f"{row.part} {row.event}".strip() if row.part else "all"
    return f"{part} in {row.query[:30]!r} {row.difference:+.3g} s{span}"


def _measure_same(table: Mapping[str, Any]) -> Iterator[Figure]:
    """The plain environment against itself, in several kinds."""
    pairs = [(kind, seed) for kind in STILL if kind in table for seed in SEEDS]
    found = [(kind, _measure_equal(kind, seed)) for kind, seed in pairs]
    quiet = sum(not outcome.first for _, outcome in found)
    notes = [f"{kind}: {outcome.said}" for kind, outcome in found if outcome.first]
    yield Figure(name="causes: none named for the same", value=_percent(quiet, len(found)), goal=SAME_GOAL, unit="%",
                 low_is_good=False, notes=(say_share(quiet, len(found)), *notes))  # fmt: skip


def _measure_equal(kind: str, seed: int) -> Outcome:
    """`first`: whether any cause was named; a study that cannot be split does not count as one without."""
    with _studied(f"{SAME}-{kind}-{seed}", partial(_same_plan, kind, seed)) as study:
        attributions = load_answer(StudyFolder(study), why=True).attributions
    causes = [cause for attribution in attributions for cause in attribution.causes]
    return Outcome(first=bool(causes) or not attributions, said=_say(causes[0] if causes else None))


def _same_plan(kind: str, seed: int, scratch: Path) -> Plan:
    """The experiment of a kind without its injection, and with a control."""
    text = (FOLDER / f"{kind}.toml").read_text()
    begin, _, rest = text.partition('[[environments]]\nname = "injected"')
    cells = rest[rest.index("[[cells]]") :]
    for file in FOLDER.glob("*.sql"):
        (scratch / file.name).write_bytes(file.read_bytes())
    (scratch / "same.toml").write_text(CONTROL + begin + cells)
    return load_plan(scratch / "same.toml", seed=seed)


def _percent(count: int, made: int) -> float:
    return 100 * count / made if made else math.nan
