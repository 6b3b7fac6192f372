"""Which waits of a window go with what server and host did, at which lag. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.model.archive import AROUND_RATES, COMMITS, SERVER_RATES
from pgstrata.model.association import ArchiveSeries, Association, Associations
from pgstrata.model.attribution import ValueInterval
from pgstrata.stats.association import (
    FEWEST_STEPS,
    Cleared,
    LaggedPairs,
    adjust_dependent,
    clear,
    correlate_lagged,
    detection_limit,
    normal_scores,
    remove_shape,
)
from pgstrata.stats.batches import LEVEL
from pgstrata.stats.ranks import FloatArray

LONGEST_LAG: Final = 6
"""Steps."""
_DAY: Final = 86_400
_FEWEST_DAYS: Final = 2
_QUARTER: Final = 900
"""Seconds of a part of the day that has a mean of its own."""
_PERIODS: Final = (3600, 1800, 600, 300, 60)
"""Seconds after which jobs of a clock come again."""
_FEWEST_PERIODS: Final = 8
_SEEN: Final = 0.5
"""Share of its looks that a step needs."""
_MOST_ALIKE: Final = 0.9
"""Share of steps with one and the same value from which on a series is left out."""
_RUNNING: Final = ""
_PARTS: Final[Mapping[str, frozenset[str]]] = {
    _RUNNING: frozenset({"run_queue_length", "host_user_cpu", "host_system_cpu"}),
    "IO/DataFileRead": frozenset({"relation_reading"}),
    "IO/DataFileWrite": frozenset({"relation_writing"}),
    "IO/DataFileExtend": frozenset({"relation_extending"}),
    "IO/WalWrite": frozenset({"wal_writing"}),
    "IO/WalSync": frozenset({"wal_syncing"}),
}
"""Rates in which the sessions of a wait event are counted, too."""
_OF_ALL: Final = frozenset({"connections"})
_OF_IO: Final = frozenset({"disk_queue"})


def is_part(event: str, rate: str) -> bool:
    """Whether the sessions of a wait event, empty for running, are a part of what a rate counts."""
    return rate in _OF_ALL or rate in _PARTS.get(event, ()) or (event.startswith("IO/") and rate in _OF_IO)


def fewest_seconds(series: ArchiveSeries) -> int:
    """How long a window has to be at least."""
    return FEWEST_STEPS * series.step


def correlate(series: ArchiveSeries) -> Associations:
    """Every wait event with every rate, throughput included.

    What comes again by the clock is taken out of all series: two jobs of the same hours or minutes would seem to go
    together. What throughput tells of both is taken out of the pairs without it, as it stands for demand, which drives
    both. Where it falls as both grow, it does not: there it is an effect of what they share, and is left alone. With
    fewer than `FEWEST_STEPS` steps nothing is tested.
    """
    seen = _seen(series)
    prepared = _prepare(series, seen)
    held = COMMITS in prepared.rates
    pairs = [*_test(prepared, series, held=held)]
    adjusted = adjust_dependent([pair.p for pair in pairs])
    rows = [pair.row(each, series.step) for pair, each in zip(pairs, adjusted, strict=True)]
    rows.sort(key=lambda row: (not row.resolved, -abs(row.rho)))
    resolved = sum(row.resolved for row in rows)
    error = float(np.median([pair.error for pair in pairs])) if pairs else None
    known = {*prepared.load, *prepared.rates}
    return Associations(
        span=series.span,
        step=series.step,
        unit=series.unit,
        steps=int(seen.sum()),
        all_steps=seen.size,
        longest=LONGEST_LAG * series.step,
        held=held,
        shapes=_shapes(series),
        rows=tuple(rows),
        parts=sum(is_part(event, rate) for event in prepared.load for rate in prepared.rates),
        constant=tuple(name for name in (*series.load, *series.rates) if name not in known),
        limit=None if error is None else detection_limit(error, len(rows), resolved, 2 * LONGEST_LAG + 1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """Series that change, by name, NaN where a step is not known."""

    load: Mapping[str, FloatArray]
    rates: Mapping[str, FloatArray]


def _seen(series: ArchiveSeries) -> np.ndarray:
    """Whether a step has enough looks, shape (steps,)."""
    looks = np.asarray(series.looks, dtype=np.float64)
    return np.asarray(looks >= _SEEN * series.step)


def _prepare(series: ArchiveSeries, seen: np.ndarray) -> _Prepared:
    looks = np.where(seen, np.asarray(series.looks, dtype=np.float64), np.nan)
    load = {event: np.asarray(counts, dtype=np.float64) / looks for event, counts in series.load.items()}
    rates = {
        name: np.where(seen, np.asarray(series.rates[name], dtype=np.float64), np.nan)
        for name in (*SERVER_RATES, *AROUND_RATES)
        if name in series.rates
    }
    return _Prepared(
        load={event: values for event, values in load.items() if _changes(values)},
        rates={name: values for name, values in rates.items() if _changes(values)},
    )


def _changes(values: FloatArray) -> bool:
    """Whether a series is known in enough steps, and has not one value in nearly all of them."""
    known = values[np.isfinite(values)]
    if known.size < FEWEST_STEPS:
        return False
    most = np.unique(known, return_counts=True)[1].max()
    return bool(most <= _MOST_ALIKE * known.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """One test: the wait event, the rate, and its place in what was correlated."""

    event: str
    rate: str
    pairs: LaggedPairs
    place: tuple[int, int]
    held: bool = False

    @property
    def p(self) -> float:
        return float(self.pairs.p[self.place])

    @property
    def error(self) -> float:
        return float(self.pairs.error[self.place])

    def row(self, adjusted: float, step: int) -> Association:
        low, high = self.pairs.interval_of(self.place)
        best, shortest, longest = self.pairs.lags_of(self.place)
        return Association(
            event=self.event,
            rate=self.rate,
            held=self.held,
            rho=float(self.pairs.rho[self.place]),
            interval=ValueInterval(low=low, high=high),
            lead=best * step,
            leads=(shortest * step, longest * step),
            p=self.p,
            adjusted=adjusted,
            resolved=adjusted <= LEVEL,
            steps=int(self.pairs.pairs[self.place]),
        )


def _shapes(series: ArchiveSeries) -> tuple[int, ...]:
    """Periods in seconds of what is taken out: the longest that the window has often enough, and the day."""
    seconds = series.span.seconds
    often = (each for each in _PERIODS if each > series.step and seconds >= _FEWEST_PERIODS * each)
    days = (_DAY,) if seconds >= _FEWEST_DAYS * _DAY else ()
    return (*list(often)[:1], *days)


def _shapeless(scores: FloatArray, series: ArchiveSeries) -> tuple[FloatArray, int]:
    """Series without their shapes, and how many means were taken out of each."""
    moments = series.span.begin + series.step * np.arange(scores.shape[1])
    means = 0
    for period in _shapes(series):
        width = _QUARTER if period == _DAY else series.step
        scores = remove_shape(scores, moments % period // width)
        means += -(-period // width)
    return scores, means


def _test(prepared: _Prepared, series: ArchiveSeries, *, held: bool) -> Iterator[_Pair]:
    """All pairs of which something is known."""
    if not prepared.load or not prepared.rates:
        return
    events, names = list(prepared.load), list(prepared.rates)
    scores = normal_scores(np.stack([*prepared.load.values(), *prepared.rates.values()]))
    scores, means = _shapeless(scores, series)
    number = len(events)
    whole = clear(scores, None, LONGEST_LAG)
    plain = _relate(whole, number, means)
    if not held:
        yield from _known(events, names, plain)
        return
    driver = names.index(COMMITS)
    cleared = _relate(clear(scores, scores[number + driver], LONGEST_LAG), number, means)
    braking = _braking(whole.values, number + driver, means)
    for pair in _known(events, names, plain):
        row, column = pair.place
        if column == driver or (braking[row] and braking[number + column]):
            yield pair
        elif np.isfinite(cleared.rho[pair.place]):
            yield replace(pair, pairs=cleared, held=True)


def _relate(cleared: Cleared, number: int, means: int) -> LaggedPairs:
    """The first so many series with all others."""
    return correlate_lagged(cleared.values[:number], cleared.values[number:], LONGEST_LAG, cleared.fitted + means)


def _braking(values: FloatArray, driver: int, means: int) -> npt.NDArray[np.bool_]:
    """Which series grow as the driver falls, by Bonferroni's bound over all of them; shape (series,)."""
    found = correlate_lagged(values, values[[driver]], LONGEST_LAG, means)
    return np.asarray((found.rho[:, 0] < 0) & (found.p[:, 0] <= LEVEL / len(values)))


def _known(events: list[str], names: list[str], found: LaggedPairs) -> Iterator[_Pair]:
    for row, event in enumerate(events):
        for column, name in enumerate(names):
            if not is_part(event, name) and np.isfinite(found.rho[row, column]):
                yield _Pair(event=event, rate=name, pairs=found, place=(row, column))
