"""Attributions of differences with a known truth: coverage, false causes, and how often the true cause comes first.

Drawn, not measured: the account of a transaction on a small machine, blocks that drift together, rows that fluctuate by
themselves, and samples of the sessions, few (10 Hz, 2 sessions, 5 s) or many (4 sessions, 30 s).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from figures import Figure

from pgstrata.diagnosis.account import Seen
from pgstrata.diagnosis.attribution import attribute
from pgstrata.model.activity import SessionCount, SessionState
from pgstrata.model.attribution import Attribution, Part

REPEATS = 250
SECONDS = 667e-6
FEW, MANY = 100, 1200
LEAST_SAMPLES = 20
UPDATE, SELECT, END = "UPDATE a SET b = b + ? WHERE c = ?", "SELECT b FROM a WHERE c = ?", "END"
Row = tuple[Part, str, str]
Floats = npt.NDArray[np.float64]
ROWS: Mapping[Row, float] = {
    (Part.CLIENT, "", ""): 0.55,
    (Part.CPU, "", UPDATE): 0.12,
    (Part.CPU, "", SELECT): 0.05,
    (Part.CPU, "", END): 0.03,
    (Part.QUEUE, "", UPDATE): 0.02,
    (Part.WAIT, "IO/WalSync", END): 0.17,
    (Part.WAIT, "LWLock/WALWrite", END): 0.04,
    (Part.WAIT, "IO/WalWrite", END): 0.01,
    (Part.WAIT, "IO/DataFileRead", UPDATE): 0.01,
    (Part.REST, "", END): 0.0,
}
"""Shares of a transaction's time."""
KEYS = tuple(ROWS)
COMMIT_WAIT, CPU, SLEEP, READ = KEYS[5], KEYS[1], KEYS[9], KEYS[8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """How a study is drawn.

    `drift` is the sd of a block's level in log units, `correlation` that of neighbouring blocks; `noise` the sd of a
    run, `fluctuation` that of a row, `waits` of a wait, `burst` of the commit wait alone (0: as the others). `counted`:
    the kernel counts CPU and run queue; `overlap` of the time of reads is CPU as well.
    """

    blocks: int
    samples: int
    drift: float = 0.1
    noise: float = 0.02
    fluctuation: float = 0.05
    waits: float = 0.05
    burst: float = 0.0
    correlation: float = 0.0
    counted: bool = True
    overlap: float = 0.0


RIGS = tuple(
    Rig(blocks=blocks, samples=samples, drift=drift, waits=waits)
    for blocks, samples in ((3, FEW), (5, FEW), (5, MANY), (12, MANY))
    for drift in (0.04, 0.2)
    for waits in (0.05, 0.3)
)


def measure_attribution() -> Iterator[Figure]:
    """About 45 s of CPU."""
    rng = np.random.default_rng(20261122)
    yield from _measure_intervals(rng)
    yield from _measure_power(rng)
    yield _measure_weights(rng)


def _measure_intervals(rng: np.random.Generator) -> Iterator[Figure]:
    """Coverage with and without a difference, and what is found where there is none."""
    correlated = [Rig(blocks=blocks, samples=MANY, drift=0.2, correlation=0.8) for blocks in (5, 12)]
    sampled = [replace(rig, counted=False) for rig in RIGS[::4]]
    yield from _measure_bursts(rng)
    for name, rigs in (("", RIGS), (", correlated blocks", correlated), (", nothing counted", sampled)):
        covered, causes, rows = [], [], []
        for rig in rigs:
            equal = [draw(rng, rig, {}) for _ in range(REPEATS)]
            other = [draw(rng, rig, {COMMIT_WAIT: 0.1}) for _ in range(REPEATS)]
            covered.append(min(_cover(equal, rig, {}), _cover(other, rig, {COMMIT_WAIT: 0.1})))
            causes.append(sum(bool(item.causes) for item in equal) / REPEATS)
            rows.append(sum(any(row.resolved for row in (*item.rows, *item.parts)) for item in equal) / REPEATS)
        note = f"of {len(rigs)} rigs the worst; their mean {np.mean(covered):.3f}"
        yield Figure(
            name=f"attribution: coverage{name}", value=min(covered), goal=0.9, low_is_good=False, notes=(note,)
        )
        note = f"of {len(rigs)} rigs the worst; their mean {np.mean(causes):.3f}; a row is resolved in {max(rows):.3f}"
        yield Figure(name=f"attribution: false causes{name}", value=max(causes), goal=0.05, notes=(note,))


def _measure_bursts(rng: np.random.Generator) -> Iterator[Figure]:
    """Coverage of the one row that comes in bursts, the commit wait, among calm ones."""
    for blocks, samples in ((5, FEW), (5, MANY), (12, MANY)):
        held: list[bool] = []
        for burst in (0.3, 0.6):
            found = [draw(rng, Rig(blocks=blocks, samples=samples, drift=0.2, burst=burst), {}) for _ in range(REPEATS)]
            spans = [part.interval for item in found for part in item.parts if part.event == COMMIT_WAIT[1]]
            held += [span.low <= 0 <= span.high for span in spans if span]
        yield Figure(name=f"attribution: bursts, {blocks} blocks x {samples}", value=sum(held) / len(held), goal=0.93,
                     low_is_good=False)  # fmt: skip


def _measure_power(rng: np.random.Generator) -> Iterator[Figure]:
    """How often the injected cause is the first."""
    few, five, many = (Rig(blocks=b, samples=n, drift=0.2) for b, n in ((5, FEW), (5, MANY), (12, MANY)))
    reads = replace(five, overlap=0.8)
    asked = (
        ("commit wait of 20 %, 5 blocks x 100 samples", few, COMMIT_WAIT, 0.2, 0.8),
        ("commit wait of 50 %, 5 blocks x 100 samples", few, COMMIT_WAIT, 0.5, 0.9),
        ("commit wait of 10 %, 5 blocks x 1200 samples", five, COMMIT_WAIT, 0.1, 0.8),
        ("commit wait of 20 %, 5 blocks x 1200 samples", five, COMMIT_WAIT, 0.2, 0.9),
        ("commit wait of 10 %, 12 blocks x 1200 samples", many, COMMIT_WAIT, 0.1, 0.9),
        ("CPU of 10 %, 12 blocks x 1200 samples", many, CPU, 0.1, 0.9),
        ("CPU of 20 %, 5 blocks x 100 samples", few, CPU, 0.2, 0.8),
        ("unnamed sleep of 20 %, 5 blocks x 1200 samples", five, SLEEP, 0.2, 0.9),
        ("reads from the page cache of 20 %, 5 blocks x 1200", reads, READ, 0.2, 0.9),
    )
    for name, rig, row, size, goal in asked:
        found = [draw(rng, rig, {row: size}) for _ in range(REPEATS)]
        first = sum(bool(item.causes) and _is(item.causes[0].part, item.causes[0].event, row) for item in found)
        resolved = sum(item.total.resolved for item in found) / REPEATS
        yield Figure(name=f"attribution: {name}, first", value=first / REPEATS, goal=goal, low_is_good=False,
                     notes=(f"the difference itself is certain in {resolved:.2f}",))  # fmt: skip


def _measure_weights(rng: np.random.Generator) -> Figure:
    """What weighting by level saves where blocks drift by 20 %: width of an interval, over that without weights."""
    rig = Rig(blocks=12, samples=MANY, drift=0.2)
    ratios = []
    for _ in range(REPEATS):
        seconds = _draw_rows(rng, rig, {COMMIT_WAIT: 0.2})
        d = seconds[0, KEYS.index(COMMIT_WAIT)] - seconds[1, KEYS.index(COMMIT_WAIT)]
        weighted = d / np.sqrt(seconds[0].sum(axis=0) * seconds[1].sum(axis=0))
        ratios.append(float(weighted.std() / weighted.mean() / (d.std() / d.mean())))
    return Figure(name="attribution: width, weighted / plain", value=float(np.mean(ratios)), goal=1.0)


# ------------------------------------------------------------------------------------------------ drawing


def draw(rng: np.random.Generator, rig: Rig, injected: Mapping[Row, float]) -> Attribution:
    """The attribution of a drawn study, in which rows of the environment are larger by shares of a transaction."""
    seconds = _draw_rows(rng, rig, injected)
    value, reference = ([_see(rng, rig, run) for run in side.T] for side in seconds)
    return attribute(value, reference, environment="injected", reference_name="plain", cell="c")


def _draw_rows(rng: np.random.Generator, rig: Rig, injected: Mapping[Row, float]) -> Floats:
    """Seconds per transaction, shape (sides, rows, blocks)."""
    level = rng.normal(0, 1, rig.blocks)
    for block in range(1, rig.blocks):
        level[block] = rig.correlation * level[block - 1] + math.sqrt(1 - rig.correlation**2) * level[block]
    shares = np.array([[ROWS[key] + injected.get(key, 0.0) for key in KEYS], list(ROWS.values())])
    own = np.array([rig.waits if key[0] is Part.WAIT else rig.fluctuation for key in KEYS])[:, np.newaxis]
    own[KEYS.index(COMMIT_WAIT)] = rig.burst or own[KEYS.index(COMMIT_WAIT)]
    rows = rng.normal(0, 1, (2, len(KEYS), rig.blocks)) * own
    runs = rng.normal(0, rig.noise, (2, 1, rig.blocks))
    return np.asarray(SECONDS * shares[:, :, np.newaxis] * np.exp(rows + runs + rig.drift * level))


def _see(rng: np.random.Generator, rig: Rig, seconds: Floats) -> Seen:
    """What is seen of one run with these seconds by row."""
    drawn = rng.multinomial(rig.samples, seconds / seconds.sum())
    by_part = {part: sum(float(s) for key, s in zip(KEYS, seconds, strict=True) if key[0] is part) for part in Part}
    read = float(seconds[KEYS.index(READ)])
    return Seen(
        seconds=float(seconds.sum()),
        sessions=tuple(_count(key, int(samples)) for key, samples in zip(KEYS, drawn, strict=True) if samples),
        cpu=by_part[Part.CPU] + rig.overlap * read if rig.counted else None,
        queue=by_part[Part.QUEUE] if rig.counted else None,
    )


def _count(key: Row, samples: int) -> SessionCount:
    part, event, query = key
    state = {Part.CLIENT: SessionState.CLIENT, Part.WAIT: SessionState.WAITING}.get(part, SessionState.RUNNING)
    kind, _, name = event.partition("/")
    return SessionCount(state=state, wait_type=kind, event=name, query=query, samples=samples)


def _cover(found: Sequence[Attribution], rig: Rig, injected: Mapping[Row, float]) -> float:
    """In how many of the parts that were seen often enough the interval holds what was injected.

    An injected share is worth its seconds at the level of the weighted blocks: `SECONDS` over the mean of 1 / level,
    with what noise adds to a mean of exponentials.
    """
    draws = _draw_rows(np.random.default_rng(1), replace(rig, blocks=20_000, correlation=0.0), injected)
    weights = 1 / np.sqrt(draws[0].sum(axis=0) * draws[1].sum(axis=0))
    mean = ((draws[0] - draws[1]) * weights).sum(axis=1) / weights.sum()
    truth: dict[tuple[Part, str], float] = {}
    for key, seconds in zip(KEYS, mean, strict=True):
        part = Part.RUNNING if not rig.counted and key[0] in {Part.CPU, Part.QUEUE, Part.REST} else key[0]
        truth[part, key[1]] = truth.get((part, key[1]), 0.0) + (float(seconds) if injected else 0.0)
    held = [
        part.interval.low <= truth[part.part, part.event] <= part.interval.high
        for item in found
        for part in item.parts
        if part.part is not None
        and part.interval
        and part.samples >= LEAST_SAMPLES
        and (part.part, part.event) in truth
    ]
    return sum(held) / len(held)


def _is(part: Part | None, event: str, row: Row) -> bool:
    return part is row[0] and event == row[1]
