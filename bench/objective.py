"""Whether the interval of a rate within an objective covers the truth: of simulated servers, and of real ones.

The truth of a real server comes from long runs at fixed rates around the limit: after the first repetitions, in the
middle, and at the end. A repetition is four searches of an environment, one in each block of a study of the baseline
and itself (`controls = ["same"]`), so that a study makes two. Studies are kept in KEEP: the same call goes on where it
was interrupted.
"""

from __future__ import annotations

import gzip
import math
import os
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from figures import Figure
from observer import Silence

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.conduct.steps import score_step
from pgstrata.drivers.pgbench.transactions import count_late
from pgstrata.model.metrics import SUSTAINED_RATE
from pgstrata.model.objective import LEAD_SHARE, STEPS, Objective
from pgstrata.model.study import Study
from pgstrata.ports.driver import StepCounts
from pgstrata.sources.runs import may_enter
from pgstrata.stats.objective import Step, find_crossing, level_interval, next_rate
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

DRAWS: Final = 300
RUNS: Final = 5
SECONDS: Final = 3.0
OBJECTIVE: Final = Objective(of="p99", limit=0.02)
_LONGEST: Final = 240.0

_Floats = npt.NDArray[np.float64]


def measure_objective() -> Iterator[Figure]:
    """The simulation; with REPETITIONS=20 also that many on real servers."""
    for name, server in SERVERS.items():
        yield _simulate(name, server)
    if wanted := int(os.environ.get("REPETITIONS") or 0):
        yield from _measure_real(wanted)


# ------------------------------------------------------------------------------------------------ simulated


class Server:
    """A single queue whose speed scatters between runs, wanders within them, and stalls.

    Args:
        between: standard deviation of the logarithm of speed between runs.
        within: the same within a run, with a correlation time of half a second.
        stalls: of about 50 ms, per second.
    """

    rate: Final = 1000.0
    variation: Final = 0.6

    def __init__(self, between: float, within: float, stalls: float) -> None:
        self.between, self.within, self.stalls = between, within, stalls

    def speed(self, rng: np.random.Generator) -> float:
        return math.exp(rng.normal(0, self.between))

    def wander(self, rng: np.random.Generator, seconds: float) -> _Floats:
        keep, noise = math.exp(-0.1), rng.normal(size=int(seconds / 0.05) + 2)
        values = [noise[0]]
        for each in noise[1:]:
            values.append(keep * values[-1] + math.sqrt(1 - keep * keep) * each)
        return np.exp(self.within * np.array(values))

    def latencies(self, rng: np.random.Generator, rate: float, seconds: float, speed: float) -> tuple[_Floats, _Floats]:
        """Scheduled starts and latencies; waits by Lindley's recursion (1952)."""
        begun = np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds)))
        if not begun.size:
            return begun, begun
        work = rng.gamma(1 / self.variation**2, self.variation**2 / (self.rate * speed), begun.size)
        work /= self.wander(rng, seconds)[(begun / 0.05).astype(int)]
        for place in rng.integers(0, begun.size, rng.poisson(self.stalls * seconds)):
            work[place] += rng.exponential(0.05)
        sums = np.concatenate(([0.0], np.cumsum(work[:-1] - np.diff(begun))))
        return begun, sums - np.minimum.accumulate(sums) + work


SERVERS: Final = {
    "calm": Server(0.01, 0.02, 0.0),
    "wandering": Server(0.015, 0.05, 0.0),
    "stalling": Server(0.02, 0.05, 0.02),
}


def _simulate(name: str, server: Server) -> Figure:
    rng = np.random.default_rng(11)
    truth = _truth(server, rng)
    covered, errors, halves = 0, list[float](), list[float]()
    for _ in range(DRAWS):
        rates = [_search(server, rng) for _ in range(RUNS)]
        level = level_interval(rates)
        assert level is not None
        covered += level.low <= truth <= level.high
        errors += [math.log(rate / truth) for rate in rates]
        halves.append(math.log(level.high / level.low) / 2)
    notes = [
        f"{DRAWS} draws of {RUNS} searches of {STEPS} steps of {SECONDS:g} s; truth {truth:.0f}/s",
        f"single searches: mean error {100 * np.mean(errors):+.1f} %, standard deviation {100 * np.std(errors):.1f} %",
        f"half an interval: {100 * np.median(halves):.1f} % (median)",
    ]
    return Figure(
        name=f"objective, simulated {name} server: interval covers the truth",
        value=100 * covered / DRAWS, goal=90, unit="%", low_is_good=False, notes=notes,
    )  # fmt: skip


def _search(server: Server, rng: np.random.Generator) -> float:
    speed = server.speed(rng)
    maximum = server.rate * speed * float(server.wander(rng, SECONDS).mean())
    steps: list[Step] = []
    while len(steps) < STEPS - 1 and (rate := next_rate(steps, maximum)) is not None:
        begun, latencies = server.latencies(rng, rate, SECONDS, speed)
        counted = (begun > LEAD_SHARE * SECONDS) & (begun + latencies < SECONDS)
        steps.append(score_step(_count(begun[counted], latencies[counted]), rate, OBJECTIVE))
    return find_crossing(steps).rate


def _count(begun: _Floats, latencies: _Floats) -> StepCounts:
    third = latencies.size // 3
    growth = 0.0
    if third:
        rise = float(np.median(latencies[-third:]) - np.median(latencies[:third]))
        growth = rise / float(np.median(begun[-third:]) - np.median(begun[:third]))
    return StepCounts(
        transactions=latencies.size, late=int((latencies > OBJECTIVE.limit).sum()),
        mean=float(latencies.mean()) if latencies.size else 0.0, growth=growth,
    )  # fmt: skip


def _truth(server: Server, rng: np.random.Generator) -> float:
    """The rate at which 1 % of all transactions of many long runs are late."""
    rates = np.geomspace(0.4 * server.rate, 1.05 * server.rate, 60)
    late = [
        np.concatenate(
            [server.latencies(rng, rate, 60.0, server.speed(rng))[1] > OBJECTIVE.limit for _ in range(20)]
        ).mean()
        for rate in rates
    ]
    return interpolate(rates.tolist(), [float(each) for each in late], OBJECTIVE.late_share or 0.01)


def interpolate(rates: Sequence[float], late: Sequence[float], share: float) -> float:
    """Where the share of late transactions reaches `share`: by the isotonic fit over all rates."""
    steps = [
        Step(rate=rate, score=each / share, weight=1.0, least=1e-4) for rate, each in zip(rates, late, strict=True)
    ]
    return find_crossing(steps).rate


# ------------------------------------------------------------------------------------------------ real

SEARCH: Final = """
question = "Does the interval cover the truth?"
blocks = {blocks}
seed = {seed}
controls = ["same"]
diagnosis = false
[common]
server = "embedded"
{cells}
"""
KINDS: Final = {
    "sleep": 'scripts = [{ file = "sleep.sql" }]\nthreads = 1\nscale = 1\nclients = 4',
    "select-only": 'workload = "select-only"\nscale = 10\nclients = 4',
}
LIMITS: Final = {"sleep": Objective(of="p99", limit=0.02), "select-only": Objective(of="p99", limit=0.005)}
SLEEP: Final = "SELECT pg_sleep(0.001 + 0.006 * random());\n"
GRID: Final = (0.9, 0.95, 1.0, 1.05, 1.1)
# More than a minute at each rate, in pieces apart, so that drift of the machine is in the truth as in the repetitions.
PIECES: Final = 3
PIECE: Final = 12
REAL_RUN: Final = 2 * STEPS
REAL_RUNS: Final = 4


def _measure_real(wanted: int) -> Iterator[Figure]:
    """KINDS (sleep, select-only) of servers; MINUTES ends the call between two blocks; studies lie in KEEP."""
    root = Path(os.environ.get("KEEP") or Path(__file__).parent / "work" / "objective")
    left = _Left(60 * float(os.environ.get("MINUTES") or math.inf))
    for kind in (os.environ.get("KINDS") or "sleep").split(","):
        folder = root / kind
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "sleep.sql").write_text(SLEEP)
        number = math.ceil(wanted / 2)
        pauses = {0: 1, (number - 1) // 2: 2, number - 1: PIECES}
        studies, truth = list[Mapping[str, list[float]]](), None
        for place in range(number):
            studies.append(_repeat(kind, folder, place, left))
            middle = _middle([each for study in studies for each in study.values() if each])
            if place in pauses and middle:
                truth = _measure_truth(kind, folder, middle, pauses[place], left)
        rates = [each for study in studies for each in study.values()]
        yield from _judge(kind, [each for each in rates if len(each) == REAL_RUNS][:wanted], truth, wanted)


class _Left:
    """Seconds that a call still has."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    @property
    def seconds(self) -> float:
        return self.end - time.monotonic()


def _run(text: str, folder: Path, name: str, left: _Left) -> Study:
    """What a study has when it is complete, or the time of the call is over."""
    file = folder / f"{name}.toml"
    file.write_text(text)
    study = StudyFolder(folder / name)
    if left.seconds > 0:
        budget = left.seconds if math.isfinite(left.seconds) else None
        run_experiment(replace(load_plan(file), floors={}), study, Silence(), budget=budget, stop_early=False)
    return load_study(folder / name)


def _repeat(kind: str, folder: Path, number: int, left: _Left) -> Mapping[str, list[float]]:
    """The rates of the runs of both environments, as far as they are there."""
    if left.seconds <= 0 and not (folder / f"study-{number}").exists():
        return {}
    cell = f'[[cells]]\n{KINDS[kind]}\nobjective = "{LIMITS[kind].text}"\nrun = "{REAL_RUN}s"\nwarmup = "2s"\n'
    study = _run(SEARCH.format(blocks=REAL_RUNS, seed=number + 1, cells=cell), folder, f"study-{number}", left)
    found: dict[str, list[float]] = {}
    for run in study.runs:
        if may_enter(run) and (value := run.value(SUSTAINED_RATE.name)):
            found.setdefault(run.environment, []).append(value)
        spent = run.measured_seconds + sum(run.dead_time.values())
        if spent > _LONGEST / REAL_RUNS:
            print(f"    {run.identity} took {spent:.0f} s: {REAL_RUNS} of them would not fit into {_LONGEST:.0f} s")
    return found


def _middle(each: Sequence[Sequence[float]]) -> float:
    """The median rate of all runs; 0 without any."""
    return statistics.median([rate for rates in each for rate in rates]) if each else 0.0


def _measure_truth(kind: str, folder: Path, middle: float, pieces: int, left: _Left) -> float | None:
    """So many pieces at each rate of a grid in both environments; the grid stays as the first call chose it."""
    kept = folder / "middle.txt"
    if not kept.exists():
        kept.write_text(repr(middle))
    rates = [round(float(kept.read_text()) * share, 1) for share in GRID]
    cells = "\n".join(f'[[cells]]\n{KINDS[kind]}\nrate = {rate}\nrun = "{PIECE}s"\nwarmup = "2s"\n' for rate in rates)
    if left.seconds <= 0 and not (folder / "truth").exists():
        return None
    study = _run(SEARCH.format(blocks=pieces, seed=1, cells=cells), folder, "truth", left)
    objective, shares = LIMITS[kind], list[tuple[float, float]]()
    for run in study.runs:
        log = folder / "truth" / "evidence" / run.identity / "transactions.log.gz"
        rate = study.plan.experiment.cell(run.cell).rate
        counts = count_late(gzip.decompress(log.read_bytes()), limit=objective.limit, lead=1.0)
        if rate and counts.transactions:
            shares.append((rate, counts.late / counts.transactions))
    if len(study.runs) < 2 * pieces * len(GRID):
        return None
    print("    " + ", ".join(f"{rate:.0f}/s: {100 * share:.2f} % late" for rate, share in sorted(shares)))
    return interpolate([rate for rate, _ in shares], [share for _, share in shares], objective.late_share or 0.01)


def _judge(kind: str, repetitions: Sequence[Sequence[float]], truth: float | None, wanted: int) -> Iterator[Figure]:
    levels = [level for rates in repetitions if (level := level_interval(rates))]
    for level in levels:
        print(f"    {kind}: {level.value:.0f}/s [{level.low:.0f}, {level.high:.0f}]")
    if truth is None or not levels:
        print(
            f"    {kind}: {len(levels)} of {wanted} repetitions, truth {'not measured yet' if truth is None else truth}"
        )
        return
    covered = sum(level.low <= truth <= level.high for level in levels)
    half = statistics.median(math.log(level.high / level.low) / 2 for level in levels)
    notes = [
        f"{len(levels)} of {wanted} repetitions of {REAL_RUNS} runs of {REAL_RUN} s",
        f"half an interval: {100 * half:.1f} % (median)",
        f"truth {truth:.0f}/s, from {2 * PIECES * PIECE} s at each of {len(GRID)} rates",
    ]
    yield Figure(
        name=f"objective, real {kind} server: interval covers the truth",
        value=100 * covered / len(levels), goal=90, unit="%", low_is_good=False, notes=notes,
    )  # fmt: skip
