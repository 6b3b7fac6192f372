"""Known truths on real servers: loads slowed by known work, how soon they are seen, and whether the verdict is right.

The truth comes from a calibration of its own: all loads up together, at least ten minutes, every block used. Then each
load is compared with the plain one as a user would do it, stopping when it is decided.
"""

from __future__ import annotations

import itertools
import math
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from pgstrata.stats.rule import Rule, decide_many, estimate_many
from pgstrata.store.load import load_study

# About how many percent of select-only's throughput so many bytes more to digest take on two small CPUs.
WORK = {1: 60, 2: 120, 5: 300, 10: 600, 20: 1250}
# The same for simple-update, whose transactions wait for the disk most of the time.
WRITING_WORK = 20000
CALIBRATION_SECONDS = 600.0
EQUALS = 4
EQUAL_BLOCKS = 20
REDRAWN = 5000
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
clients = 2
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
            environments=arms, workload=self.workload, controls=self.controls,
        )  # fmt: skip
        file = folder / "question.toml"
        file.write_text(text)
        return replace(load_plan(file), floors={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What a calibration says of one load: percent of change with an interval, in tps and in server CPU."""

    change: float
    low: float
    high: float
    cpu: float


def percent(d: float) -> float:
    return 100 * math.expm1(d)


def measure(question: Question, *, stop_early: bool = True) -> tuple[Plan, Sequence[RunRecord], float]:
    """The plan, its runs with rounds, and the seconds that the whole command took."""
    with tempfile.TemporaryDirectory() as name:
        plan = question.plan(Path(name))
        begun = time.monotonic()
        run_experiment(plan, Path(name) / "study", Silence(), stop_early=stop_early)
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
    return run.value("server_cpu_per_tx") or math.nan


def calibrate(workload: str, work: Mapping[str, int]) -> Mapping[str, Truth]:
    """Truths by name."""
    seconds = 0.0
    blocks: list[Mapping[str, RunRecord]] = []
    for seed in itertools.count(100):
        question = Question(arms=work, workload=workload, blocks=7, seed=seed, interleave="slices")
        _, runs, took = measure(question, stop_early=False)
        blocks += by_block(runs).values()
        seconds += took
        if seconds >= CALIBRATION_SECONDS:
            break
    truths = {}
    for name in work:
        d = np.array([visit_difference(block["plain"], block[name]) for block in blocks])
        cpu = [
            math.log(
                (block[name].value("server_cpu_per_tx") or math.nan)
                / (block["plain"].value("server_cpu_per_tx") or math.nan)
            )
            for block in blocks
        ]
        (estimate,) = estimate_many([d[:24]])
        assert estimate.interval is not None
        truths[name] = Truth(
            change=percent(estimate.centre), low=percent(estimate.interval.low), high=percent(estimate.interval.high),
            cpu=percent(statistics.median(cpu)),
        )  # fmt: skip
        print(f"    truth {workload} {name}: {truths[name]} from {len(d)} visits in {seconds / 60:.1f} min", flush=True)
    return truths


def ask(question: Question) -> tuple[Comparison, float]:
    """The headline of a question with one arm, and the minutes to it."""
    plan, runs, seconds = measure(question)
    found = compare_study(plan, runs)
    (headline,) = [each for each in found if each.metric == "tps" and not each.exploratory]
    return headline, seconds / 60


def say(name: str, headline: Comparison, minutes: float, truth: Truth | None) -> str:
    low = high = math.nan
    if headline.interval is not None:
        low, high = 100 * (headline.interval.low - 1), 100 * (headline.interval.high - 1)
    effect = math.nan if headline.effect is None else 100 * (headline.effect - 1)
    place = ""
    if truth is not None:
        place = f", truth {truth.change:+.2f} {'inside' if low <= truth.change <= high else 'OUTSIDE'}"
    return (
        f"{name}: {headline.verdict} {effect:+.2f} % [{low:+.2f}, {high:+.2f}] after {headline.blocks} blocks, "
        f"{minutes:.1f} min{place}"
    )


def measure_live() -> Sequence[Figure]:
    """Select-only: loads of about 1, 2, 5, 10 and 20 %, and an equal one."""
    truths = calibrate("select-only", {f"slow{size}": work for size, work in WORK.items()})
    figures = []
    for size, goal in ((20, 1.5), (10, 1.5), (5, 1.5), (2, 3.0), (1, 6.0)):
        name = f"slow{size}"
        headline, minutes = ask(Question(arms={name: WORK[size]}, threshold=0.5, seed=size))
        value = minutes if headline.verdict is Verdict.WORSE else math.inf
        cpu = f"server CPU per transaction {truths[name].cpu:+.1f} %"
        told = (say(name, headline, minutes, truths[name]), cpu)
        figures.append(
            Figure(name=f"live: minutes to {size} %, select-only", value=value, goal=goal, unit="min", notes=told)
        )
        print(figures[-1].line(), *told, sep="\n    ", flush=True)
    headline, minutes = ask(Question(arms={"equal": 0}, threshold=2.0, seed=7))
    value = minutes if headline.verdict is Verdict.EQUIVALENT else math.inf
    notes: tuple[str, ...] = (say("equal", headline, minutes, None),)
    figures.append(Figure(name="live: minutes to equality within 2 %", value=value, goal=6.0, unit="min", notes=notes))
    return figures


def measure_live_runs() -> Sequence[Figure]:
    """The same loads run by run, 10 s each: what slices save. Beside it the design that most people use."""
    told, longest = [], 0.0
    for size in (10, 5):
        name = f"slow{size}"
        question = Question(arms={name: WORK[size]}, threshold=0.5, seed=50 + size, interleave="runs")
        headline, minutes = ask(question)
        longest = max(longest, minutes)
        told.append(say(name, headline, minutes, None))
        print("   ", told[-1], flush=True)
    told.append("fixed design, three runs of 30 min each, one environment after the other: 180 min")
    return [Figure(name="live: minutes run by run, select-only", value=longest, goal=180.0, unit="min", notes=told)]


def measure_live_writing() -> Sequence[Figure]:
    """Simple-update slowed by about 5 % of its throughput."""
    truth = calibrate("simple-update", {"slow": WRITING_WORK})["slow"]
    question = Question(arms={"slow": WRITING_WORK}, workload="simple-update", threshold=2.0, interleave="slices")
    headline, minutes = ask(question)
    value = minutes if headline.verdict is Verdict.WORSE else math.inf
    notes = (say("slow", headline, minutes, truth),)
    return [Figure(name="live: minutes to 5 %, simple-update", value=value, goal=4.0, unit="min", notes=notes)]


def measure_live_equal() -> Sequence[Figure]:
    """Equal loads: visits re-drawn into comparisons; how often a difference is found."""
    arms = {f"equal{number}": 0 for number in range(1, EQUALS)}
    question = Question(arms=arms, blocks=EQUAL_BLOCKS, interleave="slices")
    _, runs, seconds = measure(question, stop_early=False)
    source = np.random.default_rng(1)
    visits = [list(block.values()) for block in by_block(runs).values()]
    differences = [[visit_difference(a, b) for a, b in itertools.permutations(visit, 2)] for visit in visits]
    samples = []
    for _ in range(REDRAWN):
        order = source.permutation(len(differences))
        samples.append(np.array([source.choice(differences[place]) for place in order]))
    decisions = decide_many(samples, [Rule(delta=math.log(1.03))] * len(samples))
    found = {Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE}
    false = 100 * float(np.mean([each.verdict in found for each in decisions]))
    spread = 100 * statistics.stdev(d for visit in differences for d in visit)
    note = (
        f"{len(visits)} visits of {EQUALS} equal environments in {seconds / 60:.1f} min, SD of a visit's D "
        f"{spread:.2f} %, re-drawn into {REDRAWN} comparisons"
    )
    return [Figure(name="live: false verdicts among equals", value=false, goal=5.0, unit="%", notes=(note,))]
