"""A stretch in which transactions seem to take longer: an incident, or more demand; and since when. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from pgstrata.diagnosis.live.changes import choose_cutting, judge, keep_familiar, main_changes, throughput_of
from pgstrata.diagnosis.live.load import load_of
from pgstrata.diagnosis.live.statements import change_calls
from pgstrata.diagnosis.live.usual import REFERENCE
from pgstrata.model.archive import ArchiveWindow, Span
from pgstrata.model.explanation import Outcome
from pgstrata.model.incidents import DemandKind, IncidentKind
from pgstrata.stats.batches import memory_of
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.shifts import Beginning, find_beginning

BEFORE: Final = 600
"""Seconds before an alarm that it is compared with."""
ROSE: Final = 1.1
"""Factor of throughput from which on it rose, and below whose inverse it fell."""
_SURE: Final = 2.0
"""Standard errors by which it has to have risen."""
_NONE: Final = 0.02
"""Share of the usual throughput below which no transactions end."""
_FEWEST_COMMITS: Final = 20.0
"""Transactions that would have ended as usual, so that none is a stall."""
_FEWEST_CELLS: Final = 10
_MOSTLY: Final = 0.5
_SELDOM: Final = 0.1
"""A statement with less than this part of its present load was there seldom."""
_MOST_STATEMENTS: Final = 3
_DEMAND: Final = frozenset({Outcome.SATURATED, Outcome.MORE})


class Past(Protocol):
    """What was recorded lately."""

    def window(self, span: Span) -> ArchiveWindow | None:
        """The window in its finest cells; None where nothing was recorded."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What a suspicion came to; `statements` with most of the extra load first, of other statements alone."""

    kind: IncidentKind | DemandKind
    throughput: float
    usual_throughput: float
    load: float
    usual_load: float
    statements: tuple[str, ...] = ()


def locate(whole: ArchiveWindow, since: int, upto: int, *, ends: bool = False) -> tuple[int, int, int] | None:
    """When a shift in `whole` began (or ended), between two moments, and its interval; None where nothing is known.

    Looked at is load - usual time per transaction x throughput by cell, which is 0 as long as all is usual.

    Args:
        whole: ends with what is shifted (or as usual), and begins with the opposite.
        since: the shift is not earlier.
        upto: nor later.
        ends: what comes first is slow, what comes last as usual.
    """
    load, throughput = load_of(whole), throughput_of(whole)
    known = (np.asarray(whole.looks) > 0) & np.isfinite(throughput)
    first, last = (max(0, (each - whole.span.begin) // whole.cell) for each in (since, upto))
    last = min(last + 1, load.size)
    usual = known.copy()
    usual[:last] = False
    if not ends:
        usual = known.copy()
        usual[first:] = False
    if usual.sum() < _FEWEST_CELLS or first >= last or float(throughput[usual].sum()) <= 0:
        return None
    excess = np.where(known, load - load[usual].sum() / throughput[usual].sum() * throughput, np.nan)
    searched = excess[first:] if not ends else excess[:last]
    rest = excess[usual]
    variance = float(rest.var()) * memory_of(rest)
    found = _find(searched, variance) if not ends else _find_end(searched, variance)
    if found is None:
        return None
    offset = first if not ends else 0
    place, low, high = (
        whole.span.begin + (offset + each) * whole.cell for each in (found.place, found.low, found.high)
    )
    return place, low, high


def _find(searched: FloatArray, variance: float) -> Beginning | None:
    """None where nothing is known of the last half, which says how large the shift is."""
    shifted = searched[-max(3, searched.size // 2) :]
    known = shifted[np.isfinite(shifted)]
    return find_beginning(searched, float(known.mean()) or 1e-9, variance) if known.size else None


def _find_end(searched: FloatArray, variance: float) -> Beginning | None:
    """The end of a change, searched backwards in time like a beginning."""
    found, size = _find(searched[::-1], variance), searched.size
    if found is None:
        return None
    return Beginning(place=size - found.place, low=size - found.high, high=size - found.low)


def examine(value: ArchiveWindow, reference: ArchiveWindow) -> Examined:
    """What the time since a beginning is against the time before.

    It is what `explain` would say of both, where they are long enough for an interval; otherwise throughput that rose
    by a tenth for certain is more demand, and so is extra load that is mostly in other statements.
    """
    throughput, before = _mean(throughput_of(value)), _mean(throughput_of(reference))
    load, usual_load = _mean_load(value), _mean_load(reference)
    fell = throughput * ROSE < before
    others = _other_statements(value, reference)
    kind: IncidentKind | DemandKind = IncidentKind.SLOWER
    outcome = _outcome(value, reference)
    if before * value.span.seconds >= _FEWEST_COMMITS and throughput < _NONE * before:
        kind = IncidentKind.STALLED
    elif outcome in _DEMAND or _rose(throughput, before, reference):
        kind = DemandKind.MORE
    elif not fell and (outcome is Outcome.OTHER_MIX or _is_other_mix(others, load, usual_load, throughput, before)):
        kind = DemandKind.STATEMENTS
    ranked = sorted(others, key=lambda key: -others[key])[:_MOST_STATEMENTS]
    return Examined(
        kind=kind,
        throughput=throughput,
        usual_throughput=before,
        load=load,
        usual_load=usual_load,
        statements=tuple(ranked) if kind is DemandKind.STATEMENTS else (),
    )


def _outcome(value: ArchiveWindow, reference: ArchiveWindow) -> Outcome:
    if not sum(value.looks) or not sum(reference.looks):
        return Outcome.UNKNOWN
    cutting = choose_cutting(value, reference)
    throughput, load, time = main_changes(value, reference, cutting)
    _, _, familiar = main_changes(keep_familiar(value, reference), reference, cutting)
    return judge(throughput, load, time, familiar, change_calls(value, reference))


def _rose(throughput: float, before: float, reference: ArchiveWindow) -> bool:
    """Against the scatter of the time before, which is taken for that of a minute."""
    if throughput <= ROSE * before:
        return False
    series = throughput_of(reference)
    known = series[np.isfinite(series)]
    cells = max(1, 60 // reference.cell)
    number = known.size // cells
    if number < 3:  # noqa: PLR2004 - of fewer there is no scatter
        return throughput > ROSE**2 * before
    means = known[known.size - number * cells :].reshape(number, cells).mean(axis=1)
    return throughput - before > _SURE * float(means.std(ddof=1))


def _other_statements(value: ArchiveWindow, reference: ArchiveWindow) -> Mapping[str, float]:
    """The load of statements that were not there or seldom, by key."""
    ours, theirs = _by_statement(value), _by_statement(reference)
    return {key: load for key, load in ours.items() if key and theirs.get(key, 0.0) < _SELDOM * load}


def _is_other_mix(
    others: Mapping[str, float], load: float, usual_load: float, throughput: float, before: float
) -> bool:
    """Whether most of the extra load is in them, and the others are not slower."""
    extra = sum(others.values())
    if not 0 < _MOSTLY * (load - usual_load) < extra or usual_load <= 0 or throughput <= 0:
        return False
    familiar = (load - extra) / throughput / (usual_load / before) if before > 0 else 0.0
    return familiar < math.exp(REFERENCE)


def _by_statement(window: ArchiveWindow) -> Mapping[str, float]:
    looks = max(1, sum(window.looks))
    found: dict[str, float] = {}
    for session, counts in window.sessions.items():
        if session.is_load:
            found[session.statement] = found.get(session.statement, 0.0) + sum(counts) / looks
    return found


def _mean(series: Iterable[float]) -> float:
    known = [each for each in series if math.isfinite(each)]
    return math.fsum(known) / len(known) if known else 0.0


def _mean_load(window: ArchiveWindow) -> float:
    looks = max(1, sum(window.looks))
    return sum(sum(counts) for session, counts in window.sessions.items() if session.is_load) / looks
