"""Throughput, load and time per transaction of two windows, and what they mean together. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from pgstrata.diagnosis.live.load import Cutting, Weighted, load_of, side_means
from pgstrata.model.archive import COMMITS, ArchiveWindow
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.explanation import CallsChange, Change, Outcome
from pgstrata.stats.batches import BatchMean, batch_length, estimate, shared_memory
from pgstrata.stats.moderated import resolve_holm
from pgstrata.stats.ranks import FloatArray

EFFECT: Final = 0.05
"""Relative change below which nothing is said to have changed, however surely."""
_LEVEL: Final = 0.05
_MOSTLY: Final = 0.5
_FEW_SAMPLES: Final = 100
"""Samples of a window below which a statement may have been there unseen."""
_IDLE: Final = 0.05
"""Average active sessions below which a server without a transaction has nothing to do."""
_LARGEST: Final = 50.0
_NEARLY_ALL: Final = 0.97


def throughput_of(window: ArchiveWindow) -> FloatArray:
    """Committed transactions per second by cell, NaN where it is not known."""
    found = window.rates.get(COMMITS)
    return np.asarray(found, dtype=np.float64) if found else np.full(len(window.looks), np.nan)


def choose_cutting(value: ArchiveWindow, reference: ArchiveWindow, *, both: bool = False) -> Cutting:
    """Batches that are long against the memory of the comparison window, as it would be without a change.

    A comparison window that is shorter than the window does not tell it alone. With `both`, neither does: what changed
    within the window counts as its scatter.
    """
    both = both or reference.span.seconds < value.span.seconds
    windows = (reference, value) if both else (reference,)
    steps = [[_filled(load_of(each)), _filled(throughput_of(each))] for each in windows]
    # cells of several windows may differ in length: each tells its memory in seconds
    memory = max(shared_memory([series]) * window.cell for series, window in zip(steps, windows, strict=True))
    lengths = tuple(batch_length(memory / window.cell, [len(window.looks)]) for window in (value, reference))
    return Cutting(lengths=(lengths[0], lengths[1]), memory=memory)


def _filled(series: FloatArray) -> FloatArray:
    known = np.isfinite(series)
    return np.where(known, series, series[known].mean() if known.any() else 0.0)


def main_changes(value: ArchiveWindow, reference: ArchiveWindow, cutting: Cutting) -> tuple[Change, Change, Change]:
    """Throughput, load, and the time of a transaction: load / throughput (Little's law).

    Relative errors are those of means; of a ratio they are those of the difference of its parts, relative to each.
    """
    longer = _longer(value, reference)
    both = side_means(_throughput_and_load(value), _throughput_and_load(reference), cutting, relative=True)
    loads = side_means(_load_alone(value), _load_alone(reference), cutting, relative=True)
    throughput, time = (
        compare_means(name, (_figure(name, both[0]), _figure(name, both[1])), both, np.array(weights), longer)[0]
        for name, weights in (("throughput", (1.0, 0.0)), ("time", (-1.0, 1.0)))
    )
    load = compare_means("load", (float(loads[0].mean[0]), float(loads[1].mean[0])), loads, np.array([1.0]), longer)[0]
    return throughput, load, time


def _load_alone(window: ArchiveWindow) -> Weighted:
    """The load of all looks, even without a known throughput, so that its parts add up to it."""
    looks = np.asarray(window.looks, dtype=np.float64)
    return Weighted(window=window, values=load_of(window)[np.newaxis], weights=looks)


def _throughput_and_load(window: ArchiveWindow) -> Weighted:
    throughput, load = throughput_of(window), load_of(window)
    weights = np.where(np.isfinite(throughput), np.asarray(window.looks, dtype=np.float64), 0.0)
    if not weights.any():
        weights = np.asarray(window.looks, dtype=np.float64)
        throughput = np.full(weights.size, np.nan)
    return Weighted(window=window, values=np.stack([throughput, load]), weights=weights)


def _figure(name: str, side: BatchMean) -> float:
    throughput, load = (float(each) for each in side.mean)
    if name == "time":
        return load / throughput if throughput > 0 else math.nan
    return throughput


def compare_means(
    name: str, figures: tuple[float, float], sides: Sequence[BatchMean], weights: FloatArray, longer: float
) -> tuple[Change, float | None]:
    """A figure of both windows, and the p value of its change.

    Args:
        name: of the figure.
        figures: of the window and of the comparison window.
        sides: their means with relative errors.
        weights: of the series in the logarithm of the figure.
        longer: seconds of the comparison window, as a multiple of those of the window. Without a change the window
            would scatter like it: that is what the limit is made of.
    """
    ours, theirs = figures
    blank = Change(name=name, value=ours, reference=theirs)
    if not (ours > 0 and theirs > 0):
        return blank, None
    # a series that is not asked for may be unknown
    used = weights != 0
    variances = [float(weights[used] @ side.covariance[np.ix_(used, used)] @ weights[used]) for side in sides]
    freedoms = (sides[0].freedom, sides[1].freedom)
    # of figures as small as 5e-324 the ratio would be 0
    small = _errs_where_small(sides, weights, sum(variances))
    known = estimate(math.log(ours) - math.log(theirs), (variances[0], variances[1]), freedoms, small=small)
    if known is None:
        return blank, None
    unchanged = estimate(0.0, (variances[1] * longer, variances[1]), (freedoms[1], freedoms[1]))
    low, high = (math.exp(max(-_LARGEST, min(_LARGEST, end))) for end in (known.low, known.high))
    change = Change(
        name=name,
        value=ours,
        reference=theirs,
        ratio=ValueInterval(low=low, high=high),
        limit=None if unchanged is None else math.expm1(min(_LARGEST, unchanged.limit)),
        resolved=low > 1 or high < 1,
    )
    return change, known.p


def _errs_where_small(sides: Sequence[BatchMean], weights: FloatArray, variance: float) -> bool:
    """Whether nearly all of the error is that of one series on the side on which it is smaller."""
    return any(
        weight**2 * mine.covariance[place, place] >= _NEARLY_ALL * variance and mine.mean[place] < other.mean[place]
        for mine, other in (sides, sides[::-1])
        for place, weight in enumerate(weights)
        if weight
    )


def rate_changes(
    names: Iterable[str], value: ArchiveWindow, reference: ArchiveWindow, cutting: Cutting
) -> tuple[Change, ...]:
    """Each of some rates in both windows; unknown ones are left out.

    They are resolved where Holm's procedure over all of them rejects that nothing changed.
    """
    found: list[tuple[Change, float | None]] = []
    for name in names:
        windows = [window for window in (value, reference) if window.rates.get(name)]
        if len(windows) == 2:  # noqa: PLR2004 - both windows
            sides = side_means(_rate(value, name), _rate(reference, name), cutting, relative=True)
            figures = (float(sides[0].mean[0]), float(sides[1].mean[0]))
            found.append(compare_means(name, figures, sides, np.array([1.0]), _longer(value, reference)))
    known = [(change, p) for change, p in found if math.isfinite(change.value) and math.isfinite(change.reference)]
    certain = resolve_holm([1.0 if p is None else p for _, p in known], _LEVEL)
    return tuple(replace(change, resolved=each) for (change, _), each in zip(known, certain, strict=True))


def _rate(window: ArchiveWindow, name: str) -> Weighted:
    series = np.asarray(window.rates[name], dtype=np.float64)
    return Weighted(window=window, values=series[np.newaxis], weights=np.isfinite(series).astype(np.float64))


def _longer(value: ArchiveWindow, reference: ArchiveWindow) -> float:
    return sum(reference.looks) / max(1, sum(value.looks))


def may_miss_statements(window: ArchiveWindow) -> bool:
    """Whether any statement may have been there unseen: nothing was counted, and little was seen."""
    samples = sum(sum(counts) for session, counts in window.sessions.items() if session.is_load)
    return not window.counted and samples < _FEW_SAMPLES


def keep_familiar(value: ArchiveWindow, reference: ArchiveWindow) -> ArchiveWindow:
    """The window without sessions in statements that were not there before.

    There is what was seen or counted in the comparison window. Where nothing was counted and little was seen, all is.
    """
    if may_miss_statements(reference):
        return value
    seen = {session.statement for session, counts in reference.sessions.items() if any(counts)}
    before = seen | {key for key, use in reference.statements.items() if use.calls} | {""}
    kept = {session: counts for session, counts in value.sessions.items() if session.statement in before}
    return replace(value, sessions=kept)


def judge(
    throughput: Change, load: Change, time: Change, familiar: Change, calls: Sequence[CallsChange],
    *, effect: float = EFFECT,
) -> Outcome:  # fmt: skip
    """What the changes mean together. A change counts if it is resolved and at least `effect`.

    Args:
        throughput: transactions per second.
        load: active sessions.
        time: load per transaction.
        familiar: the same of statements that were there before.
        calls: by statement, what was counted.
        effect: relative change.
    """
    if throughput.reference > 0 and throughput.value == 0:
        return Outcome.STALLED if load.value > _IDLE else Outcome.FEWER
    if throughput.ratio is None or time.ratio is None:
        return Outcome.UNKNOWN
    if _rose(time, effect):
        if _other_mix(calls, load) or not _rose(familiar, effect):
            return Outcome.OTHER_MIX
        return Outcome.SATURATED if _rose(throughput, effect) else Outcome.INCIDENT
    if _rose(throughput, effect):
        return Outcome.MORE
    if fell(throughput, effect):
        return Outcome.FEWER
    return Outcome.FASTER if fell(time, effect) else Outcome.SAME


def _rose(change: Change, effect: float) -> bool:
    return _moved(change) > math.log1p(effect)


def fell(change: Change, effect: float) -> bool:
    """Whether a figure fell for certain, by more than a relative change."""
    return -_moved(change) > math.log1p(effect)


def _moved(change: Change) -> float:
    """The logarithm of the ratio; 0 where it is not resolved."""
    if not change.resolved or change.reference <= 0:
        return 0.0
    return math.log(change.value) - math.log(change.reference)


def _other_mix(calls: Sequence[CallsChange], load: Change) -> bool:
    """Whether most of the extra time is that of calls beyond the former mix, and little that of slower calls.

    Calls count when they end: what was counted has to tell of most of the extra load.
    """
    total = sum(each.difference for each in calls)
    mix = sum(each.by_mix for each in calls)
    slower = sum(each.by_latency for each in calls)
    if total <= _MOSTLY * (load.value - load.reference):
        return False
    return total > 0 and mix > _MOSTLY * total and slower < (1 - _MOSTLY) * total
