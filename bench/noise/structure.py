"""The noise of one cell as a sum of parts, fitted to all its seconds.

ln of the throughput of a second is the sum of
- `second`: independent from second to second,
- `slow`: an Ornstein-Uhlenbeck process that forgets with the time constant `memory`,
- `start`: a shift of each run that decays with the time constant `settling`,
- `lasting`: a shift of each run that stays,
- `walk`: a random walk, per square root of a minute,
and some runs fall as a whole by one of `falls`. The parts come from a variogram, gamma = Var(y(t + h) - y(t)) / 2
(Cressie 1993, chapter 2), estimated by medians, so that falls and stalls count little: of two seconds of one run by
their places in it, and of two runs by their distance in time and by how early in their run they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from noise.recorded import LENGTHS, Bools, Floats, Ints, Runs, find_pairs
from noise.tables import robust_gamma, robust_sd

PARTS = ("second", "slow", "start", "lasting", "walk")
MEMORIES = np.geomspace(2, 120, 16)
SETTLINGS = np.geomspace(0.5, 8, 9)
LAGS = np.geomspace(3, 1800, 13)
# Seconds of two runs are told apart by their place: first, second, later.
EARLY = 2
# Pairs of one bin: more would not sharpen a median that hangs on a few hundred runs.
MOST_PAIRS, FEWEST_PAIRS = 15_000, 30
# Neighbours on each side by which a run is judged, and the distance in SDs from which on it has fallen.
BACKGROUND_LOAD = 4
FALLEN = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """SDs in log units; `memory` and `settling` in seconds; `falls` in log units, of the share `fallen` of the runs."""

    second: float
    slow: float
    memory: float
    start: float
    settling: float
    lasting: float
    walk: float
    fallen: float = 0.0
    falls: tuple[float, ...] = ()

    def pair_sd(self, seconds: int, distance: float, skip: float = 0.0) -> float:
        """SD of the difference of two runs of `seconds` whose beginnings are `distance` seconds apart, none fallen.

        `skip` are seconds of warm-up beyond that of the recording.
        """
        steps = np.arange(seconds, dtype=np.float64)
        inside = np.abs(steps[:, np.newaxis] - steps)
        across = np.abs(distance + steps[:, np.newaxis] - steps)
        slow = float(np.exp(-inside / self.memory).mean() - np.exp(-across / self.memory).mean())
        half = (
            self.second**2 / seconds
            + self.slow**2 * slow
            + self.start**2 * float(np.exp(-(steps + skip) / self.settling).mean()) ** 2
            + self.lasting**2
            + self.walk**2 * float(across.mean() - inside.mean()) / 120
        )
        return math.sqrt(2 * half)

    def block_sd(self, seconds: int, dead: float, skip: float = 0.0) -> float:
        """SD of a block difference: blocks of two arms, both cells in random order in each arm."""
        slot = seconds + dead + skip
        shares = ((slot, 0.25), (2 * slot, 0.5), (3 * slot, 0.25))
        return math.sqrt(sum(share * self.pair_sd(seconds, distance, skip) ** 2 for distance, share in shares))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Pairs of seconds that are compared: their places in `Seconds`, the mean lag in seconds, whether they share a run,
    and the places in their runs (the mean where it varies)."""

    first: Ints
    second: Ints
    lag: float
    within: bool
    places: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """All seconds of a cell in order: `times` since the first run, `run` they belong to, `place` in it, `logs` free of
    the mean course of a run."""

    times: Floats
    run: Ints
    place: Ints
    logs: Floats
    bins: tuple[Bin, ...]


def collect_seconds(runs: Runs, cell: str, rng: np.random.Generator) -> Seconds:
    """The seconds of all runs of a cell, and which of them are compared."""
    times, owners, places, logs = [], [], [], []
    for length in LENGTHS:
        kept = [run for run in find_pairs(runs, cell, length).rows.ravel() if len(runs.seconds[run]) == length]
        matrix = np.array([runs.seconds[run] for run in kept])
        times.append((runs.columns["started"][kept][:, np.newaxis] + np.arange(length)).ravel())
        owners.append(np.repeat(np.array(kept, dtype=np.int64), length))
        places.append(np.tile(np.arange(length, dtype=np.int64), len(kept)))
        logs.append((matrix - _course(matrix)).ravel())
    order = np.argsort(np.concatenate(times))
    at, run, place = np.concatenate(times)[order], np.concatenate(owners)[order], np.concatenate(places)[order]
    bins = tuple(_make_bins(at, run, place, rng))
    return Seconds(times=at, run=run, place=place, logs=np.concatenate(logs)[order], bins=bins)


def _course(matrix: Floats) -> Floats:
    """How a run begins and ends on average: the median by second against the mean of the run, shape (seconds,)."""
    course = np.median(matrix - matrix.mean(axis=1, keepdims=True), axis=0)
    return np.asarray(course - course.mean(), dtype=np.float64)


def _make_bins(times: Floats, run: Ints, place: Ints, rng: np.random.Generator) -> Iterator[Bin]:
    first, second = np.triu_indices(times.size, k=1)
    lags, same = times[second] - times[first], run[first] == run[second]
    early = np.minimum(place, EARLY)
    masks: list[tuple[Bools, bool]] = [
        (same & (place[first] == i) & (place[second] == j), True)
        for i, j in itertools.combinations(range(max(LENGTHS)), 2)
    ]
    for low, high in itertools.pairwise(LAGS):
        apart = ~same & (lags >= low) & (lags < high)
        masks += [
            (apart & (early[first] == i) & (early[second] == j), False)
            for i in range(EARLY + 1)
            for j in range(EARLY + 1)
        ]
    for mask, within in masks:
        found = np.flatnonzero(mask)
        if found.size > MOST_PAIRS:
            found = rng.choice(found, MOST_PAIRS, replace=False)
        if found.size >= FEWEST_PAIRS:
            i, j = first[found], second[found]
            places = float(place[i].mean()), float(place[j].mean())
            yield Bin(first=i, second=j, lag=float(lags[found].mean()), within=within, places=places)


def variogram(seconds: Seconds, logs: Floats) -> Floats:
    """gamma of each bin, shape (bins,): half the square of 1.4826 * the median distance."""
    return np.array([robust_gamma(logs[each.second] - logs[each.first]) for each in seconds.bins])


def bin_columns(bins: Sequence[Bin], memory: float, settling: float) -> Floats:
    """What a variance of one gives to the gamma of each bin, by part: shape (bins, parts)."""
    lags, within = np.array([each.lag for each in bins]), np.array([each.within for each in bins])
    one, other = np.exp(-np.array([each.places for each in bins]) / settling).T
    start = np.where(within, (one - other) ** 2, one**2 + other**2) / 2
    return np.stack([np.ones_like(lags), 1 - np.exp(-lags / memory), start, ~within, lags / 120], axis=1)


def fit_structure(seconds: Seconds, gammas: Floats) -> Structure:
    """Relative least squares with parts that are not below zero, over a grid of the two time constants."""
    within = np.array([each.within for each in seconds.bins])
    # Each bin counts by its share of what is to be explained; within and between runs weigh the same together.
    scale = np.sqrt(np.where(within, 1 / within.sum(), 1 / (~within).sum())) / gammas
    best, found = math.inf, None
    for memory, settling in itertools.product(MEMORIES.tolist(), SETTLINGS.tolist()):
        parts, loss = _fit_parts(bin_columns(seconds.bins, memory, settling) * scale[:, np.newaxis], gammas * scale)
        if loss < best:
            best, found = loss, (memory, settling, np.sqrt(parts).tolist())
    assert found is not None
    memory, settling, parts = found
    return Structure(memory=memory, settling=settling, **dict(zip(PARTS, parts, strict=True)))


def _fit_parts(columns: Floats, wanted: Floats) -> tuple[Floats, float]:
    """Least squares without negative coefficients: the best of all sets of columns whose coefficients are positive."""
    gram, right, total = columns.T @ columns, columns.T @ wanted, float(wanted @ wanted)
    best = np.zeros(len(right)), total
    for size in range(1, len(right) + 1):
        for kept in itertools.combinations(range(len(right)), size):
            solved = np.linalg.lstsq(gram[np.ix_(kept, kept)], right[list(kept)], rcond=None)[0]
            loss = total - float(solved @ right[list(kept)])
            if loss < best[1] and (solved > 0).all():
                parts = np.zeros(len(right))
                parts[list(kept)] = solved
                best = parts, loss
    return best


def judge_runs(runs: Runs, cell: str, run_seconds: int) -> Floats:
    """ln of each run of a cell against the median of its neighbours of the same series, in the order of recording."""
    pairs = find_pairs(runs, cell, run_seconds)
    logs, found = runs.logs("tps"), []
    for series in np.unique(pairs.series):
        places = np.sort(pairs.rows[pairs.series == series].ravel())
        y = logs[places]
        for place in range(y.size):
            low = min(max(0, place - BACKGROUND_LOAD), max(0, y.size - 2 * BACKGROUND_LOAD - 1))
            others = np.delete(y[low : low + 2 * BACKGROUND_LOAD + 1], place - low)
            found.append(float(y[place] - np.median(others)))
    return np.array(found)


def find_falls(residuals: Sequence[Floats]) -> tuple[float, tuple[float, ...]]:
    """Share of runs more than `FALLEN` robust SDs below their neighbours, and by how much each lies below them."""
    falls = [-float(value) for each in residuals for value in each if value < -FALLEN * robust_sd(each)]
    return len(falls) / sum(each.size for each in residuals), tuple(falls)


def fit_cell(runs: Runs, cell: str, rng: np.random.Generator) -> tuple[Structure, Seconds]:
    """The whole model of a cell, falls included, and what it was fitted to."""
    seconds = collect_seconds(runs, cell, rng)
    fallen, falls = find_falls([judge_runs(runs, cell, length) for length in LENGTHS])
    structure = fit_structure(seconds, variogram(seconds, seconds.logs))
    return replace(structure, fallen=fallen, falls=falls), seconds
