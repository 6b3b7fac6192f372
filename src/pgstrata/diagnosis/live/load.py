"""The load of two windows by wait event, statement and application, and what makes up its difference. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pgstrata.diagnosis.account import FEWEST_SAMPLES
from pgstrata.model.archive import ArchiveWindow, SessionClass
from pgstrata.model.attribution import Part, ValueInterval
from pgstrata.model.explanation import LoadRow
from pgstrata.stats.batches import BatchMean, as_relative, batch_mean, estimate, paired_means
from pgstrata.stats.moderated import resolve_holm
from pgstrata.stats.ranks import FloatArray

_LEVEL: Final = 0.05
MOST_ROWS: Final = 40
"""Rows that stand alone; smaller ones are in the remainder."""
_Name = tuple[Part | None, str, str, str]
"""Part, event, statement, application."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutting:
    """How both windows are cut into batches: cells of a batch by window, and the memory of the series in seconds.

    `paired`: cells of the same number in both are pairs, and each is a batch.
    """

    lengths: tuple[int, int]
    memory: float
    paired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """Series of a window, shape (series, cells), and how much each cell counts, shape (cells,)."""

    window: ArchiveWindow
    values: FloatArray
    weights: FloatArray


def side_means(
    value: Weighted, reference: Weighted, cutting: Cutting, *, relative: bool = False
) -> tuple[BatchMean, BatchMean]:
    """Means of both windows with their errors, relative to the means where that is asked for."""
    if cutting.paired:
        values, weights = (value.values, reference.values), (value.weights, reference.weights)
        return paired_means(values, weights, relative=relative)
    first, second = (
        batch_mean(side.values, side.weights, length, cutting.memory / side.window.cell)
        for side, length in zip((value, reference), cutting.lengths, strict=True)
    )
    return (as_relative(first), as_relative(second)) if relative else (first, second)


def load_of(window: ArchiveWindow) -> FloatArray:
    """Average active sessions by cell, shape (cells,); 0 where there was no look."""
    total = np.zeros(len(window.looks))
    for session, counts in window.sessions.items():
        if session.is_load:
            total += np.asarray(counts, dtype=np.float64)
    return per_look(total, window)


def per_look(sums: FloatArray, window: ArchiveWindow) -> FloatArray:
    """Sums of sessions as means over the looks of each cell; the last axis is that of cells."""
    looks = np.asarray(window.looks, dtype=np.float64)
    return np.divide(sums, looks, out=np.zeros_like(sums), where=looks > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitLoad:
    """Rows with the remainder last, and the same load by one name each; all add up to the same difference."""

    rows: tuple[LoadRow, ...]
    waits: tuple[LoadRow, ...]
    statements: tuple[LoadRow, ...]
    applications: tuple[LoadRow, ...]


def split_load(value: ArchiveWindow, reference: ArchiveWindow, cutting: Cutting) -> SplitLoad:
    """What each wait event, statement and application adds to the load.

    What was seen fewer than `FEWEST_SAMPLES` times in both windows together goes into the remainder, and so do the
    smallest rows beyond `MOST_ROWS`.
    """
    pairs = _Pairs(value, reference, cutting, _group(value, _name), _group(reference, _name))
    shown = pairs.largest(MOST_ROWS)
    rows = pairs.rows(shown)
    kept = set(shown)
    rest = [name for name in pairs.names if name not in kept]
    remainder = [pairs.row(None, rest)] if rest else []
    return SplitLoad(
        rows=(*rows, *remainder),
        waits=_together(pairs, lambda name: (name[0], name[1], "", "")),
        statements=_together(pairs, lambda name: (None, "", name[2], "")),
        applications=_together(pairs, lambda name: (None, "", "", name[3])),
    )


def split_background(value: ArchiveWindow, reference: ArchiveWindow, cutting: Cutting) -> tuple[LoadRow, ...]:
    """What processes did that serve no client, by kind and event: beside the load, no part of it."""

    def kind_of(session: SessionClass) -> _Name | None:
        if session.is_load or session.state or session.kind in {"", "client backend", "parallel worker"}:
            return None
        part, event = _doing(session)
        return part, event, "", session.kind

    pairs = _Pairs(value, reference, cutting, _group(value, kind_of), _group(reference, kind_of))
    return pairs.rows(pairs.largest(MOST_ROWS))


def _doing(session: SessionClass) -> tuple[Part, str]:
    if session.wait_type:
        return Part.WAIT, f"{session.wait_type}/{session.event}"
    return Part.RUNNING, ""


def _name(session: SessionClass) -> _Name | None:
    if not session.is_load:
        return None
    return (*_doing(session), session.statement, session.application)


def _group(window: ArchiveWindow, name: Callable[[SessionClass], _Name | None]) -> Mapping[_Name, FloatArray]:
    """Samples by name and cell."""
    found: dict[_Name, FloatArray] = {}
    for session, counts in window.sessions.items():
        named = name(session)
        if named is not None:
            found[named] = found.get(named, np.zeros(len(counts))) + np.asarray(counts, dtype=np.float64)
    return found


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The samples of both windows by name and cell."""

    value: ArchiveWindow
    reference: ArchiveWindow
    cutting: Cutting
    ours: Mapping[_Name, FloatArray]
    theirs: Mapping[_Name, FloatArray]

    @property
    def names(self) -> tuple[_Name, ...]:
        return tuple(dict.fromkeys((*self.ours, *self.theirs)))

    def samples(self, names: Iterable[_Name]) -> int:
        both = (self.ours, self.theirs)
        return round(sum(float(side[name].sum()) for name in names for side in both if name in side))

    def largest(self, most: int) -> list[_Name]:
        """Names that stand alone, the largest difference first."""
        often = [name for name in self.names if self.samples([name]) >= FEWEST_SAMPLES]
        return sorted(often, key=lambda name: -abs(self._difference([name])))[:most]

    def rows(self, names: Sequence[_Name]) -> tuple[LoadRow, ...]:
        return self.judged([(name, [name]) for name in names])

    def judged(self, groups: Sequence[tuple[_Name, Sequence[_Name]]]) -> tuple[LoadRow, ...]:
        """A row for each group, resolved by Holm's procedure over all of them."""
        tested = [self._test(name, members) for name, members in groups]
        known = [place for place, (_, p) in enumerate(tested) if p is not None]
        certain = dict(zip(known, resolve_holm([tested[place][1] or 0.0 for place in known], _LEVEL), strict=True))
        return tuple(replace(row, resolved=certain.get(place, False)) for place, (row, _) in enumerate(tested))

    def row(self, name: _Name | None, members: Sequence[_Name]) -> LoadRow:
        return self._test(name, members)[0]

    def _test(self, name: _Name | None, members: Sequence[_Name]) -> tuple[LoadRow, float | None]:
        sides = []
        for window, samples in ((self.value, self.ours), (self.reference, self.theirs)):
            looks = np.asarray(window.looks, dtype=np.float64)
            summed = sum((samples[each] for each in members if each in samples), np.zeros(looks.size))
            sides.append(Weighted(window=window, values=per_look(summed, window)[np.newaxis], weights=looks))
        both = side_means(sides[0], sides[1], self.cutting)
        means = [float(side.mean[0]) for side in both]
        variances = [float(side.covariance[0, 0]) for side in both]
        known = estimate(means[0] - means[1], (variances[0], variances[1]), (both[0].freedom, both[1].freedom))
        part, event, statement, application = name or (None, "", "", "")
        row = LoadRow(
            part=part, event=event, statement=statement, application=application, value=means[0], reference=means[1],
            interval=None if known is None else ValueInterval(low=known.low, high=known.high), resolved=False,
            samples=self.samples(members),
        )  # fmt: skip
        return row, None if known is None else known.p

    def _difference(self, names: Sequence[_Name]) -> float:
        ours, theirs = (
            sum(float(side[name].sum()) for name in names if name in side) / max(1, sum(window.looks))
            for window, side in ((self.value, self.ours), (self.reference, self.theirs))
        )
        return ours - theirs


def _together(pairs: _Pairs, name: Callable[[_Name], _Name]) -> tuple[LoadRow, ...]:
    """All of the load by one name, the largest difference first."""
    groups: defaultdict[_Name, list[_Name]] = defaultdict(list)
    for each in pairs.names:
        groups[name(each)].append(each)
    rows = pairs.judged(list(groups.items()))
    return tuple(sorted(rows, key=lambda row: -abs(row.difference)))
