"""Throughput by round over the visits of a cell in slices: drift between visits, how they begin, rounds far off.

Nothing here is judged: rounds are never replicates, and the comparison of a visit is the median over its rounds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

from pgstrata.model.courses import EVENTS
from pgstrata.model.metrics import BACKGROUND_LOAD, ROUND_TPS
from pgstrata.model.runs import RunRecord, Validity
from pgstrata.model.study import Study
from pgstrata.sources.runs import may_enter
from pgstrata.stats.floor import MAD_TO_SD
from pgstrata.stats.medians import median_interval
from pgstrata.stats.ranks import FloatArray

_OPENING: Final = 10
"""The first tenth of the rounds is compared with the rest."""
_FEWEST_ROUNDS: Final = 5
_FAR: Final = 6.0
"""Standard deviations from which on a round is far off."""
_LEAST: Final = math.log(1.05)
"""A round that is nearer is not far off, however little the others scatter."""
_PAIR: Final = 2
_THIRDS: Final = 3
_TREND: Final = 0.5
"""Share of the whole range by which the last third of the visits lies apart from the first, if there is a trend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One environment in one visit.

    `times` are seconds since the first slice of the visit, `values` transactions per second of each round, both NaN
    where a round is missing; empty where the run has none. `events` are the seconds in which the server's log tells of
    something, by kind. `validity` is INVALID for every run that is in no estimate.
    """

    validity: Validity
    times: tuple[float, ...]
    values: tuple[float, ...]
    events: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitTurns:
    """All environments of one visit. `background`: the largest share of the CPUs that others used; None if unknown."""

    block: int
    turns: Mapping[str, Turn]
    background: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FarRound:
    """A round of the visit at `place` in which one environment left the course of the others; `ratio` to its median."""

    place: int
    environment: str
    time: float
    value: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How visits differ: ratio of the fastest to the slowest, of all environments together, and of each by itself.

    `own` is the largest ratio by which one environment left what all of them did. `trend` is the ratio of the last
    third of the visits to the first; None where visits go up and down rather than one way.
    """

    together: float
    own: float
    trend: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The first `rounds` of a visit against the others, as a ratio with its 95 % interval over the visits."""

    environment: str
    rounds: int
    effect: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Rounds of an environment as ratios to the median of their visit: quartiles over the visits, round by round."""

    visits: int
    low: tuple[float, ...]
    middle: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRounds:
    """Everything that is drawn of a cell in slices, by visits in their order and environments in that of the plan."""

    visits: tuple[VisitTurns, ...]
    profiles: Mapping[str, Profile]
    drift: Drift | None
    openings: tuple[Opening, ...]
    far: tuple[FarRound, ...]

    @property
    def length(self) -> float:
        """Seconds from the first slice of a visit to the last, of the longest visit; at least a little."""
        times = (time for visit in self.visits for turn in visit.turns.values() for time in turn.times)
        return max((time for time in times if math.isfinite(time)), default=0.0) or 1.0

    def medians(self) -> Mapping[str, float]:
        """Median of all rounds of each environment that are in an estimate; of all its rounds where none is."""
        sound: dict[str, list[float]] = defaultdict(list)
        spoilt: dict[str, list[float]] = defaultdict(list)
        for visit in self.visits:
            for name, turn in visit.turns.items():
                (spoilt if turn.validity is Validity.INVALID else sound)[name].extend(_known(turn.values))
        return {name: median(values) for name, values in {**spoilt, **sound}.items() if values}


def find_rounds(study: Study, cell: str) -> CellRounds | None:
    """The rounds of a cell; None where no environment took turns."""
    visits = _visits(study, cell)
    names = [each.name for each in study.plan.experiment.environments]
    logs = [_logs(visit) for visit in visits]
    if not any(logs):
        return None
    return CellRounds(
        visits=visits,
        profiles={name: found for name in names if (found := _profile([log[name] for log in logs if name in log]))},
        drift=_drift(logs, names),
        openings=tuple(_openings(logs, names)),
        far=tuple(_far_rounds(visits, logs, names)),
    )


def _visits(study: Study, cell: str) -> tuple[VisitTurns, ...]:
    """Runs that took turns with each other; a run that failed before its turns stands beside those of its block."""
    groups: dict[int, dict[str, dict[str, RunRecord]]] = defaultdict(dict)
    runs = [run for run in study.runs if run.cell == cell]
    for run in sorted(runs, key=lambda run: not run.together):
        tokens = groups[run.block]
        token = run.together or next(iter(tokens), "")
        tokens.setdefault(token, {})[run.environment] = run
    return tuple(_visit(block, group) for block in sorted(groups) for group in groups[block].values())


def _visit(block: int, runs: Mapping[str, RunRecord]) -> VisitTurns:
    loads = [load for run in runs.values() if (load := run.value(BACKGROUND_LOAD)) is not None and math.isfinite(load)]
    turns = {name: _turn(run) for name, run in runs.items()}
    return VisitTurns(block=block, turns=turns, background=max(loads, default=None))


def _turn(run: RunRecord) -> Turn:
    rounds = next((series for series in run.series if series.metric == ROUND_TPS), None)
    return Turn(
        validity=run.validity if may_enter(run) else Validity.INVALID,
        times=rounds.times if rounds else (),
        values=rounds.values if rounds else (),
        events={series.metric: series.times for series in run.series if series.metric in EVENTS and series.times},
    )


def _known(values: Sequence[float]) -> list[float]:
    return [value for value in values if 0 < value < math.inf]


_Logs = Mapping[str, FloatArray]
"""ln of the rounds of a visit by environment; NaN where a round has no logarithm."""


def _logs(visit: VisitTurns) -> _Logs:
    """Logarithms of the rounds of runs that are in an estimate."""
    found = {}
    for name, turn in visit.turns.items():
        values = np.array(turn.values, dtype=np.float64)
        good = np.isfinite(values) & (values > 0)
        if turn.validity is not Validity.INVALID and good.any():
            found[name] = np.asarray(np.where(good, np.log(np.where(good, values, 1.0)), np.nan), dtype=np.float64)
    return found


def _profile(logs: Sequence[FloatArray]) -> Profile | None:
    """Rounds that at least half of the visits have; None without any."""
    if not logs:
        return None
    rounds = max(log.size for log in logs)
    table = np.full((len(logs), rounds), np.nan)
    for row, log in enumerate(logs):
        table[row, : log.size] = log - np.nanmedian(log)
    often = 2 * np.isfinite(table).sum(axis=0) >= len(logs)
    end = rounds if often.all() else int(np.argmin(often))
    if not end:
        return None
    low, middle, high = (np.exp(np.nanpercentile(table[:, :end], share, axis=0)).tolist() for share in (25, 50, 75))
    return Profile(visits=len(logs), low=tuple(low), middle=tuple(middle), high=tuple(high))


def _drift(logs: Sequence[_Logs], names: Sequence[str]) -> Drift | None:
    """Drift over visits: medians of their rounds relative to the environment's own median; None of fewer than two."""
    levels = np.array([[np.nanmedian(log[name]) if name in log else np.nan for name in names] for log in logs])
    levels = levels[np.isfinite(levels).any(axis=1)][:, np.isfinite(levels).any(axis=0)]
    if len(levels) <= 1:
        return None
    moved = levels - np.nanmedian(levels, axis=0)
    together = np.nanmedian(moved, axis=1)
    left = np.abs(moved - together[:, np.newaxis])
    span = float(np.ptp(together))
    third = len(together) // _THIRDS
    change = float(np.median(together[-third:]) - np.median(together[:third])) if third else 0.0
    return Drift(
        together=math.exp(span),
        own=math.exp(float(np.nanmax(left))),
        trend=math.exp(change) if third > 1 and abs(change) >= _TREND * span > 0 else None,
    )


def _openings(logs: Sequence[_Logs], names: Sequence[str]) -> Iterator[Opening]:
    """Openings of environments whose first rounds differ from the rest, by the interval of the median over visits."""
    for name in names:
        own = [log[name] for log in logs if name in log and log[name].size >= _FEWEST_ROUNDS]
        number = max((max(1, log.size // _OPENING) for log in own), default=0)
        found = [_mean(log[:number]) - _middle(log[number:]) for log in own]
        known = [value for value in found if math.isfinite(value)]
        inside = median_interval(known)
        if inside is not None and not inside[0] <= 0 <= inside[1]:
            ends = math.exp(inside[0]), math.exp(inside[1])
            yield Opening(environment=name, rounds=number, effect=math.exp(median(known)), interval=ends)


def _mean(values: FloatArray) -> float:
    """So that a single slow round among the first ones shows."""
    good = values[np.isfinite(values)]
    return float(good.mean()) if good.size else math.nan


def _middle(values: FloatArray) -> float:
    good = values[np.isfinite(values)]
    return float(np.median(good)) if good.size else math.nan


def _far_rounds(visits: Sequence[VisitTurns], logs: Sequence[_Logs], names: Sequence[str]) -> Iterator[FarRound]:
    """Rounds in which an environment left what the others of its visit did meanwhile.

    Six standard deviations, by the median of the absolute deviations, and at least 5 %. With two environments both are
    equally far from their mean: the one that left its own median is meant.
    """
    moved = [_moved(log) for log in logs]
    for name in names:
        own = [found[name][1] for found in moved if name in found]
        sizes = np.abs(np.concatenate(own)) if own else np.empty(0)
        sizes = sizes[np.isfinite(sizes)]
        limit = max(_LEAST, _FAR * MAD_TO_SD * float(np.median(sizes))) if sizes.size else math.inf
        for place, found in enumerate(moved):
            if name not in found:
                continue
            off, alone = found[name]
            far = np.abs(alone) > limit
            if len(found) == _PAIR:
                far &= (np.abs(off) >= np.abs(alone)) & (off * alone > 0)
            turn = visits[place].turns[name]
            for number in np.flatnonzero(far).tolist():
                yield FarRound(
                    place=place,
                    environment=name,
                    time=turn.times[number],
                    value=turn.values[number],
                    ratio=math.exp(float(off[number])),
                )


def _moved(logs: _Logs) -> Mapping[str, tuple[FloatArray, FloatArray]]:
    """Rounds of each environment relative to its own median, and these relative to the median of all of them."""
    rounds = min((log.size for log in logs.values()), default=0)
    off = {name: np.asarray(log[:rounds] - np.nanmedian(log), dtype=np.float64) for name, log in logs.items()}
    if len(off) <= 1:
        return {name: (each, each) for name, each in off.items()}
    table = np.array(list(off.values()))
    there = np.isfinite(table).any(axis=0)
    common = np.full(rounds, np.nan)
    common[there] = np.nanmedian(table[:, there], axis=0)
    return {name: (each, np.asarray(each - common, dtype=np.float64)) for name, each in off.items()}
