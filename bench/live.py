"""Known truths on real servers: loads slowed by known work, how soon they are seen, and whether the verdict is right.

The truth comes from a calibration of its own: all loads up together, at least ten minutes, every block used. Then each
load is compared with the plain one as a user would do it, stopping when it is decided: in slices by `live`, run by run
by `live-runs`. Minutes are those of the whole command, everything around the runs included, data that exist already.

All of it takes more than an hour. `LOADS=5,20,equal` asks about some loads only: percents of `WORK`, and equal;
`ONLY=live,live-runs` asks both with one calibration, of the loads asked about, and `TRUTH_MINUTES=2` shortens that,
which widens what is known of the truth.
"""

from __future__ import annotations

import itertools
import math
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from figures import Figure
from observer import Silence

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.compare import compare_study
from pgstrata.model.answer import Comparison, Verdict
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.stats.boundaries import C_DIFF, fixed_critical
from pgstrata.stats.rule import estimate_at
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

# About how many percent of select-only's throughput so many bytes more to digest take on two small CPUs.
WORK = {1: 60, 2: 120, 5: 300, 10: 600, 20: 1250}
# The same for 5 % of simple-update, by clients: a few of them wait for the disk most of the time, more for the CPUs.
# Scaled from visits with 20,000 bytes, which cost 13 % with two clients and 26 % with four (`bank/data`).
WRITING_WORK = {2: 7000, 4: 3000}
CALIBRATION_MINUTES = 10.0
CLIENTS = 2
EQUAL = "equal"
LARGEST_FIRST = tuple(str(size) for size in sorted(WORK, reverse=True))
# Minutes to a verdict in slices by load.
GOALS = {"20": 1.5, "10": 1.5, "5": 1.5, "2": 3.0, "1": 6.0, EQUAL: 6.0}
EQUALITY_PERCENT = 2.0
DIFFERENCE_PERCENT = 0.5
# What three runs of half an hour each take of two environments, one after the other.
LONG_MINUTES = 180
CPU = "server_cpu_per_tx"
EXPERIMENT = """
question = "How soon is it seen?"
blocks = {blocks}
threshold = "{threshold} %"
seed = {seed}
interleave = "{interleave}"
{controls}
[[environments]]
name = "plain"
server = "embedded"
options.extra_work = 0
{environments}
[[cells]]
workload = "{workload}"
scale = 10
clients = {clients}
run = "10s"
"""
ENVIRONMENT = """
[[environments]]
name = "{name}"
server = "{server}"
options.extra_work = {work}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An experiment of the benchmark; `arms` are counts of further work by name."""

    arms: Mapping[str, int]
    workload: str = "select-only"
    interleave: str = "auto"
    threshold: float = 1.0
    blocks: int = 24
    seed: int = 1
    controls: str = ""

    def plan(self, folder: Path) -> Plan:
        arms = "".join(ENVIRONMENT.format(name=name, server="embedded", work=work) for name, work in self.arms.items())
        text = EXPERIMENT.format(
            blocks=self.blocks, threshold=self.threshold, seed=self.seed, interleave=self.interleave,
            environments=arms, workload=self.workload, controls=self.controls, clients=CLIENTS,
        )  # fmt: skip
        file = folder / "question.toml"
        file.write_text(text)
        return replace(load_plan(file), floors={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Percent of change with an interval, of one metric."""

    change: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.change:+.2f} % [{self.low:+.2f}, {self.high:+.2f}]"

    def overlaps(self, other: Known) -> bool:
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What a calibration says of one load, in tps and in server CPU per transaction."""

    tps: Known
    cpu: Known


def percent(d: float) -> float:
    return 100 * math.expm1(d)


def know(differences: Sequence[float]) -> Known:
    """Of all visits, which are looked at once: the interval is at the critical value of their number."""
    d = np.array([each for each in differences if math.isfinite(each)])
    (estimate,) = estimate_at([d], [(fixed_critical(d.size, C_DIFF.alpha), None)])
    if estimate.interval is None:
        return Known(change=percent(estimate.centre), low=-math.inf, high=math.inf)
    return Known(
        change=percent(estimate.centre), low=percent(estimate.interval.low), high=percent(estimate.interval.high)
    )


def ratio_of(found: Comparison) -> Known | None:
    """What a comparison says; None without an interval."""
    if found.effect is None or found.interval is None:
        return None
    return Known(
        change=100 * (found.effect - 1), low=100 * (found.interval.low - 1), high=100 * (found.interval.high - 1)
    )


def measure(question: Question, *, stop_early: bool = True) -> tuple[Plan, Sequence[RunRecord], float]:
    """The plan, its runs with rounds, and the seconds that the whole command took."""
    with tempfile.TemporaryDirectory() as name:
        plan = question.plan(Path(name))
        begun = time.monotonic()
        run_experiment(plan, StudyFolder(Path(name) / "study"), Silence(), stop_early=stop_early)
        seconds = time.monotonic() - begun
        return plan, load_study(Path(name) / "study", series=True).runs, seconds


def by_block(runs: Sequence[RunRecord]) -> Mapping[int, Mapping[str, RunRecord]]:
    found: dict[int, dict[str, RunRecord]] = {}
    for run in runs:
        found.setdefault(run.block, {})[run.environment] = run
    return found


def visit_difference(one: RunRecord, other: RunRecord) -> float:
    """Median over the rounds of ln(other / one); of whole runs where there are no rounds."""
    if one.together and one.together == other.together:
        pairs = zip(one.rounds(), other.rounds(), strict=True)
        return statistics.median(math.log(b / a) for a, b in pairs if a > 0 and b > 0)
    return math.log((other.value("tps") or math.nan) / (one.value("tps") or math.nan))


def server_cpu(run: RunRecord) -> float:
    return run.value(CPU) or math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question that was answered: its headline, server CPU beside it, the minutes to it, those of all its blocks."""

    headline: Comparison
    cpu: Comparison | None
    minutes: float
    fixed: float


# What equal arms differ by is known without measuring.
ZERO = Known(change=0.0, low=0.0, high=0.0)
NOTHING = Truth(tps=ZERO, cpu=ZERO)


def chosen_loads() -> tuple[str, ...]:
    """The loads to ask about, largest first and the equal one last: those of LOADS, or all.

    Raises:
        SystemExit: LOADS names one that there is not.
    """
    known = (*LARGEST_FIRST, EQUAL)
    wanted = [name.strip().removesuffix("%") for name in os.environ.get("LOADS", "").split(",") if name.strip()]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise SystemExit(f"LOADS: there is no load {', '.join(unknown)}: {', '.join(known)}")
    return tuple(name for name in known if name in wanted or not wanted)


def calibrate(workload: str, work: Mapping[str, int]) -> Mapping[str, Truth]:
    """Truths by name; no time is spent on loads of which there are none."""
    limit = 60 * float(os.environ.get("TRUTH_MINUTES") or CALIBRATION_MINUTES)
    seconds = 0.0
    blocks: list[Mapping[str, RunRecord]] = []
    for seed in itertools.count(100) if work else ():
        question = Question(arms=work, workload=workload, blocks=7, seed=seed, interleave="slices")
        _, runs, took = measure(question, stop_early=False)
        blocks += by_block(runs).values()
        seconds += took
        if seconds >= limit:
            break
    truths = {}
    visits = [block for block in blocks if all(name in block for name in ("plain", *work))]
    for name in work:
        pairs = [(block["plain"], block[name]) for block in visits]
        truths[name] = truth = Truth(
            tps=know([visit_difference(plain, slow) for plain, slow in pairs]),
            cpu=know([math.log(server_cpu(slow) / server_cpu(plain)) for plain, slow in pairs]),
        )
        print(
            f"    truth {workload} {name}: tps {truth.tps}, server CPU per transaction {truth.cpu}, "
            f"from {len(visits)} visits in {seconds / 60:.1f} min",
            flush=True,
        )
    return truths


@cache
def truths_of(loads: tuple[str, ...]) -> Mapping[str, Truth]:
    """What select-only loses by each load, measured once however many benchmarks ask."""
    found = calibrate("select-only", {f"slow{load}": WORK[int(load)] for load in loads if load != EQUAL})
    if not found:
        # builds the data, which no question pays for
        measure(Question(arms={EQUAL: 0}, blocks=1, interleave="slices"), stop_early=False)
    return {**found, EQUAL: NOTHING}


def ask(question: Question) -> Asked:
    """The headline of a question with one arm, and the minutes to it."""
    plan, runs, seconds = measure(question)
    found = compare_study(plan, runs)
    (headline,) = [each for each in found if each.metric == "tps" and not each.exploratory]
    cpu = next((each for each in found if each.metric == CPU), None)
    minutes = seconds / 60
    fixed = minutes / len(by_block(runs)) * len(plan.blocks)
    return Asked(headline=headline, cpu=cpu, minutes=minutes, fixed=fixed)


def say(name: str, asked: Asked, truth: Truth) -> tuple[str, str]:
    headline = asked.headline
    cpu = "not measured" if asked.cpu is None else against(asked.cpu, truth.cpu)
    said = f"{headline.verdict} {against(headline, truth.tps)}, after {headline.blocks} blocks, {asked.minutes:.1f} min"
    return f"{name}: {said}", f"{name}: server CPU per transaction {cpu}"


def against(found: Comparison, truth: Known) -> str:
    """What was found, and whether the truth and its own interval lie in it."""
    said = ratio_of(found)
    if said is None:
        return f"(no interval), truth {truth}"
    inside = said.low <= truth.change <= said.high
    place = "inside" if inside else "its interval overlaps" if said.overlaps(truth) else "OUTSIDE"
    return f"{said}, truth {truth} {place}"


def covered(series: str, asked: Sequence[tuple[Asked, Truth]]) -> Figure:
    """How many of the questions have an interval that overlaps that of the truth, in tps; and in server CPU."""
    tps = [(ratio_of(each.headline), truth.tps) for each, truth in asked]
    cpu = [(ratio_of(each.cpu), truth.cpu) for each, truth in asked if each.cpu is not None]
    hits, beside = (sum(said is not None and said.overlaps(truth) for said, truth in found) for found in (tps, cpu))
    note = f"{hits} of {len(tps)} in tps, {beside} of {len(cpu)} in server CPU per transaction"
    return Figure(
        name=f"live: truth covered, {series}", value=hits, goal=len(tps), unit=f"of {len(tps)}", low_is_good=False,
        notes=(note,),
    )  # fmt: skip


def ask_load(load: str, interleave: str, seed: int) -> tuple[Asked, bool]:
    """One load against none, in select-only, and whether the verdict is the right one."""
    if load == EQUAL:
        question = Question(arms={EQUAL: 0}, threshold=EQUALITY_PERCENT, seed=seed, interleave=interleave)
    else:
        arms = {f"slow{load}": WORK[int(load)]}
        question = Question(arms=arms, threshold=DIFFERENCE_PERCENT, seed=seed, interleave=interleave)
    asked = ask(question)
    return asked, asked.headline.verdict is (Verdict.EQUIVALENT if load == EQUAL else Verdict.WORSE)


def what_of(load: str) -> str:
    return f"equality within {EQUALITY_PERCENT:g} %" if load == EQUAL else f"{load} %"


def seed_of(load: str) -> int:
    return 7 if load == EQUAL else int(load)


def name_of(load: str) -> str:
    return EQUAL if load == EQUAL else f"slow{load}"


# Minutes of what was asked in slices in this call, by load: run by run is shown beside it.
IN_SLICES: dict[str, Asked] = {}


def measure_live() -> Iterator[Figure]:
    """Select-only in slices: minutes to each load, the largest first, and to the equality of none."""
    loads = chosen_loads()
    truths = truths_of(loads)
    answers = []
    for load in loads:
        truth = truths[name_of(load)]
        asked, right = ask_load(load, "auto", seed_of(load))
        IN_SLICES[load] = asked
        answers.append((asked, truth))
        yield Figure(
            name=f"live: minutes to {what_of(load)}", value=asked.minutes if right else math.inf, goal=GOALS[load],
            unit="min", notes=say(name_of(load), asked, truth),
        )  # fmt: skip
    yield covered("slices", answers)


def measure_live_runs() -> Iterator[Figure]:
    """The same questions run by run, 10 s each, and beside them the minutes of a design that stops at no verdict."""
    loads = chosen_loads()
    truths = truths_of(loads)
    answers = []
    for load in loads:
        truth = truths[name_of(load)]
        asked, right = ask_load(load, "runs", 50 + seed_of(load))
        answers.append((asked, truth))
        yield Figure(
            name=f"live: run by run to {what_of(load)}", value=asked.minutes if right else math.inf,
            goal=round(asked.fixed, 1), unit="min",
            notes=(*say(name_of(load), asked, truth), side_by_side(load, asked)),
        )  # fmt: skip
    yield covered("run by run", answers)


def side_by_side(load: str, by_runs: Asked) -> str:
    """Minutes to the verdict of each design, and what the verdict was."""
    slices = IN_SLICES.get(load)
    said = "not asked" if slices is None else f"{slices.minutes:.1f} min ({slices.headline.verdict})"
    return (
        f"{what_of(load)}: slices {said}, runs {by_runs.minutes:.1f} min ({by_runs.headline.verdict}), fixed designs: "
        f"all {by_runs.headline.planned_blocks} blocks of runs {by_runs.fixed:.1f} min, three runs of 30 min each "
        f"{LONG_MINUTES} min"
    )


def measure_live_writing() -> Sequence[Figure]:
    """Simple-update slowed by about 5 % of its throughput."""
    work = {"slow": WRITING_WORK[CLIENTS]}
    truth = calibrate("simple-update", work)["slow"]
    question = Question(arms=work, workload="simple-update", threshold=2.0, interleave="slices")
    asked = ask(question)
    value = asked.minutes if asked.headline.verdict is Verdict.WORSE else math.inf
    return [
        Figure(
            name="live: minutes to 5 %, simple-update", value=value, goal=4.0, unit="min",
            notes=say("slow", asked, truth),
        ),
        covered("simple-update", [(asked, truth)]),
    ]  # fmt: skip
