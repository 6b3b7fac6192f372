"""Which figures of server and host began to change before the load did, and which after it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.diagnosis.live.changes import throughput_of
from pgstrata.diagnosis.live.load import load_of
from pgstrata.model.archive import COMMITS, ArchiveWindow, Span
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.explanation import Change, Lead, Onset
from pgstrata.stats.batches import memory_of
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.stretches import find_stretch

AROUND: Final = 150
"""Seconds before and after the onset of the load that are searched."""
CELLS: Final = 150
_SHORTEST: Final = 30
"""Least seconds before and after the onset; with fewer, nothing is said about leads."""
_MOST: Final = 12
_TOLD: Final = 0.4
"""Least share of the sum of squares that a beginning explains; series that drift or scatter do not reach it."""
_DRIFTS: Final = 0.1
"""Largest memory of the residuals around two levels, as a share of the series; beyond it, the series drifts."""
_SEED: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beginning:
    """When a series began to differ, Unix seconds, with its interval.

    `told` is that of `Stretch`; `rose` says that the series is larger from then on.
    """

    moment: float
    low: float
    high: float
    told: float
    rose: bool


def around_onset(onset: Onset, whole: Span) -> Span | None:
    """The span to search, which ends with the change; None if too little of it is before or after the onset."""
    begin = max(whole.begin, math.floor(onset.begin) - AROUND)
    end = min(whole.end, math.ceil(onset.begin) + AROUND)
    if onset.end_interval is not None:
        end = min(end, math.floor(onset.end_interval.low))
    if onset.begin - begin < _SHORTEST or end - onset.begin < _SHORTEST:
        return None
    return Span(begin=begin, end=end)


def find_leads(near: ArchiveWindow, onset: Onset, changes: Iterable[Change], memory: float) -> tuple[Lead, ...]:
    """How long before the load each figure began to change; only figures that changed for certain, the largest first.

    The interval of a lead reaches from the smallest to the largest difference that the intervals of both beginnings
    allow, so it covers the truth more often than they do. Figures without a clear beginning are left out.

    Args:
        near: `around_onset`, by the second.
        onset: when the load or the throughput began to change.
        changes: of figures of server and host.
        memory: of the load without a change, in seconds.
    """
    if near.unit > 1:
        return ()
    block = max(1, math.ceil(memory / near.cell))
    looked = np.asarray(near.looks) > 0
    ours = [_begin(near, np.where(looked, series, np.nan), block) for series in (load_of(near), throughput_of(near))]
    load = max((each for each in ours if each is not None), key=lambda each: each.told, default=None)
    if load is None or load.high < onset.begin_interval.low or load.low > onset.begin_interval.high:
        return ()
    found = []
    for change in _largest(changes):
        series = np.asarray(near.rates.get(change.name, ()), dtype=np.float64)
        beginning = _begin(near, series, block) if series.size else None
        if beginning is not None and beginning.rose == (change.value > change.reference):
            span = ValueInterval(low=load.low - beginning.high, high=load.high - beginning.low)
            found.append(Lead(name=change.name, seconds=load.moment - beginning.moment, interval=span))
    return tuple(found)


def _largest(changes: Iterable[Change]) -> Sequence[Change]:
    known = [each for each in changes if each.resolved and each.name != COMMITS and min(each.value, each.reference) > 0]
    return sorted(known, key=lambda each: -abs(math.log(each.value) - math.log(each.reference)))[:_MOST]


def _begin(near: ArchiveWindow, series: FloatArray, block: int) -> _Beginning | None:
    known = np.isfinite(series)
    values = series[known]
    stretch = find_stretch(values, block, _SEED)
    if stretch is None or stretch.told < _TOLD:
        return None
    inside = np.zeros(values.size, dtype=np.bool_)
    inside[stretch.begin : stretch.end] = True
    levels = float(values[inside].mean()), float(values[~inside].mean())
    memory = memory_of(values - np.where(inside, levels[0], levels[1]))
    if memory > _DRIFTS * values.size:
        return None
    if memory > block:
        stretch = find_stretch(values, math.ceil(memory), _SEED) or stretch
    starts = near.span.begin + near.cell * np.flatnonzero(known)

    def at(step: float) -> float:
        return float(np.interp(step, np.arange(starts.size), starts))

    low, high = stretch.begin_interval
    return _Beginning(
        moment=at(stretch.begin),
        low=at(low),
        high=at(high),
        told=stretch.told,
        rose=levels[0] > levels[1],
    )
