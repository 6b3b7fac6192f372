"""What pg_stat_statements counted in two windows, each figure with its error. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from pgstrata.diagnosis.live.changes import compare_means
from pgstrata.model.archive import ArchiveWindow, StatementUse, UseCourses
from pgstrata.model.explanation import Change
from pgstrata.model.periods import UseChange
from pgstrata.stats.batches import BatchMean, as_relative, batch_length, batch_mean, estimate, shared_memory
from pgstrata.stats.moderated import resolve_holm
from pgstrata.stats.ranks import FloatArray

FIGURES: Final = ("calls", "seconds", "rows", "blocks_hit", "blocks_read", "wal_bytes")
MOST_STATEMENTS: Final = 30
_LEVEL: Final = 0.05
_ROUNDING: Final = 1e-9
"""Relative to the largest value, what a series of floats scatters by itself."""
_Tested = tuple[Change, float | None]
"""A change and its p value, None where it is not known."""


def longest_statements(value: ArchiveWindow, reference: ArchiveWindow) -> tuple[str, ...]:
    """Keys of the statements with the most time per second in either window, the one with most time first.

    There are none where nothing was counted in one of the windows.
    """
    if not value.counted or not reference.counted:
        return ()
    sides = ((value, value.counted), (reference, reference.counted))

    def most(key: str) -> float:
        return max(window.statements.get(key, StatementUse()).seconds / counted for window, counted in sides)

    keys = dict.fromkeys((*value.statements, *reference.statements))
    return tuple(sorted(keys, key=most, reverse=True)[:MOST_STATEMENTS])


def change_uses(value: UseCourses, reference: UseCourses, memory: float) -> tuple[UseChange, ...]:
    """Each statement's figures per second and per call in both windows, with errors by batch means.

    A figure is resolved where Holm's procedure over all statements rejects that it did not change. Of what did not
    happen at all in one window, the difference is tested; otherwise the logarithm of the ratio.

    Args:
        value: of the window.
        reference: of the comparison window, the same statements.
        memory: of the load, in seconds; that of a statement counts where it is longer.
    """
    tested = [_test(key, value, reference, memory) for key in value.uses]
    judged = [_resolve(column) for column in zip(*tested, strict=True)]
    return tuple(
        UseChange(
            statement=key,
            per_second=tuple(column[place] for column in judged[: len(FIGURES)]),
            per_call=tuple(column[place] for column in judged[len(FIGURES) :]),
        )
        for place, key in enumerate(value.uses)
    )


def _resolve(column: Sequence[_Tested]) -> tuple[Change, ...]:
    certain = resolve_holm([1.0 if p is None else p for _, p in column], _LEVEL)
    return tuple(replace(change, resolved=each) for (change, _), each in zip(column, certain, strict=True))


def _test(key: str, value: UseCourses, reference: UseCourses, memory: float) -> list[_Tested]:
    """Figures per second, then per call."""
    steps = [(_rates(courses, key), courses, _cell(courses)) for courses in (value, reference)]
    longest = max(memory, *(_memory(rates[:2]) * cell for rates, _, cell in steps))
    sides = [_mean(rates, courses, longest / cell) for rates, courses, cell in steps]
    longer = sum(reference.seconds) / max(1.0, sum(value.seconds))
    per_second = [_per_second(place, sides, longer) for place in range(len(FIGURES))]
    return per_second + [_per_call(place, sides, longer) for place in range(1, len(FIGURES))]


def _memory(rates: FloatArray) -> float:
    """The memory of some series, in cells; what is constant but for rounding has none."""
    moving = [series for series in rates if series.size and float(np.ptp(series)) > _ROUNDING * float(series.max())]
    return shared_memory([moving])


def _cell(courses: UseCourses) -> float:
    """Seconds of a cell."""
    return max(1.0, sum(courses.seconds) / max(1, len(courses.seconds)))


def _rates(courses: UseCourses, key: str) -> FloatArray:
    """Figures per second by cell, shape (figures, cells)."""
    amounts = np.array([[getattr(use, name) for use in courses.uses[key]] for name in FIGURES], dtype=np.float64)
    seconds = np.asarray(courses.seconds)
    rates: FloatArray = np.divide(amounts, seconds, out=np.zeros_like(amounts), where=seconds > 0)
    return rates


def _mean(rates: FloatArray, courses: UseCourses, memory: float) -> BatchMean:
    length = batch_length(memory, [len(courses.seconds)])
    return batch_mean(rates, np.asarray(courses.seconds, dtype=np.float64), length, memory)


def _per_second(place: int, sides: Sequence[BatchMean], longer: float) -> _Tested:
    ours, theirs = (float(side.mean[place]) for side in sides)
    if ours > 0 and theirs > 0:
        return _compare(FIGURES[place], (ours, theirs), sides, _weights(place), longer)
    variances = tuple(float(side.covariance[place, place]) for side in sides)
    known = estimate(ours - theirs, (variances[0], variances[1]), (sides[0].freedom, sides[1].freedom))
    return Change(name=FIGURES[place], value=ours, reference=theirs), None if known is None else known.p


def _per_call(place: int, sides: Sequence[BatchMean], longer: float) -> _Tested:
    calls = [float(side.mean[0]) for side in sides]
    ours, theirs = (
        float(side.mean[place]) / each if each > 0 else math.nan for side, each in zip(sides, calls, strict=True)
    )
    return _compare(FIGURES[place], (ours, theirs), sides, _weights(place) - _weights(0), longer)


def _compare(
    name: str, figures: tuple[float, float], sides: Sequence[BatchMean], weights: FloatArray, longer: float
) -> _Tested:
    change, p = compare_means(name, figures, list(map(as_relative, sides)), weights, longer)
    return change, 1.0 if p is not None and math.isclose(*figures, rel_tol=_ROUNDING) else p


def _weights(place: int) -> FloatArray:
    weights = np.zeros(len(FIGURES))
    weights[place] = 1.0
    return weights
