"""Noise floors that were collected little by little: what the rule makes of them where nothing differs.

A long study measures a block of its baseline against itself now and then, so that a floor is pooled of the few
differences of many studies, between which a machine may have become noisier or quieter. `make_floor` pools them here,
the rule judges A/A comparisons with what comes out: by the noise model of `machine_noise`, and by the recorded series.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from figures import Figure
from machine_noise import DEFAULT, STRESS, Floats, Machines, NoiseModel, draw_blocks, draw_machines
from noise.recorded import Pairs, all_pairs, load_runs
from noise.redraw import DIFFERENT, Draws, default_threshold, judge, pool

from pgstrata.model.answer import Lane
from pgstrata.model.floor import LEAST_DIFFERENCES, FloorKey, FloorRecord
from pgstrata.model.server import Fingerprint
from pgstrata.plan.floors import make_floor
from pgstrata.stats.boundaries import MAX_BLOCKS
from pgstrata.stats.rule import Rule, decide_many

SEED = 20261122
# A percentage of about 4 is known to a tenth of a point.
COMPARISONS = 40_000
WITH_EFFECT = 2_000
RECORDED = 5_000
DELTA = math.log(1.03)
GOAL = 5.0
NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOST = Fingerprint(facts={"machine": "drawn"})
KEY = FloorKey(cell="c", metric="tps", design="runs of 60 s", conditions={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A floor of `studies` studies with `each` differences.

    The noise of every study, and of the one that is judged, is that of the machine times a factor between 1 / `spread`
    and `spread` (log-uniform); that of the judged one times `louder` as well.
    """

    name: str
    studies: int
    each: int
    spread: float = 1.0
    louder: float = 1.0
    model: NoiseModel = DEFAULT


CASES = (
    Case(name="one study of 12", studies=1, each=12),
    Case(name="6 studies of 2", studies=6, each=2),
    Case(name="12 studies of 1", studies=12, each=1),
    Case(name="one study of 12, noise x/÷ 1.5", studies=1, each=12, spread=1.5),
    Case(name="6 studies of 2, noise x/÷ 1.5", studies=6, each=2, spread=1.5),
    Case(name="12 studies of 1, noise x/÷ 1.5", studies=12, each=1, spread=1.5),
    Case(name="6 studies of 2, noise x/÷ 2", studies=6, each=2, spread=2.0),
    Case(name="one study of 12, then x 1.5", studies=1, each=12, louder=1.5),
    Case(name="6 studies of 2, then x 1.5", studies=6, each=2, louder=1.5),
    Case(name="one study of 12, then x 2", studies=1, each=12, louder=2.0),
    Case(name="6 studies of 2, then x 2", studies=6, each=2, louder=2.0),
    *(
        Case(name=f"6 studies of 2, x/÷ 1.5, {name}", studies=6, each=2, spread=1.5, model=model)
        for name, model in STRESS.items()
    ),
)


def measure_floors() -> Sequence[Figure]:
    """False verdicts by how the floor was collected; a note says what it does for effects."""
    return [*(_measure(place, case) for place, case in enumerate(CASES)), _recorded()]


def _measure(place: int, case: Case) -> Figure:
    rng = np.random.default_rng([SEED, place])
    machines = draw_machines(rng, case.model, COMPARISONS)
    floors = _floors(rng, machines, case)
    first, second = draw_blocks(rng, machines, MAX_BLOCKS)
    d = (first - second) * case.louder * _factors(rng, case.spread, COMPARISONS)
    false, fast, _ = _judge(d, floors)
    without, _, _ = _judge(d, np.full(COMPARISONS, math.nan))
    found = [
        f"{effect:.0%} found in {right:.1f} % after {blocks:.1f} blocks"
        for effect in (0.05, 0.10)
        for right, _, blocks in (_judge(d[:WITH_EFFECT] + math.log1p(effect), floors[:WITH_EFFECT]),)
    ]
    valid = 100 * float(np.mean(~np.isnan(floors)))
    note = (
        f"{fast:.2f} % by the fast lane, {without:.2f} % without a floor; floor valid in {valid:.1f} %; "
        + "; ".join(found)
    )
    return Figure(name=f"floor of {case.name}: A/A different", value=false, goal=GOAL, unit="%", notes=(note,))


def _factors(rng: np.random.Generator, spread: float, count: int) -> Floats:
    return np.exp(rng.uniform(-math.log(spread), math.log(spread), (count, 1)))


def _floors(rng: np.random.Generator, machines: Machines, case: Case) -> Floats:
    """s0 of each machine where it may be relied upon, else NaN."""
    parts = []
    for _ in range(case.studies):
        first, second = draw_blocks(rng, machines, case.each)
        parts.append((first - second) * _factors(rng, case.spread, len(first)))
    return np.array([_floor(records) for records in np.stack(parts, axis=1).tolist()])


def _floor(studies: Sequence[Sequence[float]]) -> float:
    """What plans make of the differences of studies, the oldest first."""
    records = [
        FloorRecord(
            key=KEY, host=HOST, measured=(NOW - timedelta(days=len(studies) - day)).isoformat(), version="",
            differences=tuple(differences), study=str(day), source=str(day),
        )
        for day, differences in enumerate(studies)
    ]  # fmt: skip
    floor = make_floor(KEY, records, HOST, NOW)
    return floor.s0 if floor is not None and floor.valid else math.nan


def _judge(d: Floats, floors: Floats) -> tuple[float, float, float]:
    """Percent found different, percent of it by the fast lane, mean blocks."""
    decisions = decide_many(list(d), [Rule(delta=DELTA, floor=floor) for floor in floors.tolist()])
    different = [decision.verdict in DIFFERENT for decision in decisions]
    fast = [decision.verdict in DIFFERENT and decision.lane is Lane.FAST for decision in decisions]
    blocks = float(np.mean([decision.n for decision in decisions]))
    return 100 * float(np.mean(different)), 100 * float(np.mean(fast)), blocks


def _recorded() -> Figure:
    """Each recorded series judged by a floor of two differences each of others, as many as twelve take."""
    rng, runs = np.random.default_rng([SEED, 99]), load_runs()
    outcomes = []
    for pairs in all_pairs(runs):
        d = pairs.differences(runs.logs("tps"))
        count = RECORDED // 4
        draws = [_draw(rng, pairs, d, series) for series in rng.choice(np.unique(pairs.series), count)]
        for size in {len(draw) for draw, _ in draws}:
            chosen = [(draw, floor) for draw, floor in draws if len(draw) == size]
            block = Draws(d=np.array([draw for draw, _ in chosen]), floors=np.array([floor for _, floor in chosen]))
            outcomes.append(judge(block, 0.0, default_threshold(d)))
    total = pool(outcomes)
    note = f"{total.count} comparisons of a whole recorded series, floors of single differences of the other series"
    return Figure(name="floor of recorded series: A/A different", value=total.different, goal=GOAL, unit="%",
                  notes=(note,))  # fmt: skip


def _draw(rng: np.random.Generator, pairs: Pairs, d: Floats, series: int) -> tuple[Floats, float]:
    own = d[pairs.series == series][:MAX_BLOCKS]
    others = [rng.permutation(d[pairs.series == other]) for other in np.unique(pairs.series) if other != series]
    turns = [float(other[turn]) for turn in range(LEAST_DIFFERENCES) for other in others if turn < len(other)]
    floor = _floor([[value] for value in turns[:LEAST_DIFFERENCES]])
    return own * rng.choice([-1.0, 1.0], own.shape), floor
