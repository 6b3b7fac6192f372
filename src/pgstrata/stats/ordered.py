"""Ordered axes: which level (version, kernel, size) brought the change, and is there a trend.

What belongs here: a test for steps along levels in their order, for few repeats, in blocks or without. If nothing
depends on the level, the labels of a block are exchangeable within it, whatever the machine does between blocks: p
comes from permuting them, so that no distribution is assumed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.stats.boundaries import fixed_critical
from pgstrata.stats.ranks import TIE, FloatArray, IndexArray
from pgstrata.stats.recovery import Scatter, find_recovery, find_scatter
from pgstrata.stats.rule import Estimate, LogInterval, Rule, estimate_at
from pgstrata.stats.splits import Split, find_dip, find_split, loss_of_split, place_split
from pgstrata.stats.unpaired import decide_unpaired

LEVEL: Final = 0.05
DRAWS: Final = 4999
SEED: Final = 1963

_ROUNDING: Final = 1e-9
_DIGITS: Final = 12
_FEWEST_LEVELS: Final = 2
_FEWEST_BLOCKS: Final = 7
# Of the error probability this is for steps, the rest for dips: p / share is compared with the level.
_STEP_SHARE: Final = 0.75
# The logarithm of what a float can hold.
_WIDEST: Final = 700.0
# Beyond these Page's statistic is close to normal, and counting would take long.
_EXACT_LEVELS: Final = 8
_EXACT_BLOCKS: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelStep:
    """A change between two neighbouring levels, given by their places from 0.

    `effect` is the log difference of the levels after it up to the next step, against those before it down to the
    previous one; `interval` (95 %, one look) is there from 7 blocks on; without blocks, where `blocks` is 0, from four
    values against four (95.5 %). It knows nothing of the search for the place, which makes it
    slightly too narrow for effects that are barely found. `beside` is the log difference of the two levels alone.
    """

    before: int
    after: int
    p: float
    effect: float
    interval: LogInterval | None
    blocks: int
    beside: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Page's L over the blocks without gaps: two-sided p, exact or from the normal distribution."""

    statistic: float
    p: float
    rising: bool
    blocks: int
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """Steps along an axis, in its order.

    `p` belongs to the largest split of the whole axis; `smallest_p` is what a perfect step would have had: where it
    exceeds the level, so few repeats could not have shown any step. `out_of_reach` are the levels, by their places,
    at which not even a perfect step alone could have been found. `paired` is False for data without blocks, where a
    drift of the machine looks like a step. `draws` and `seed` reproduce the permutations.
    """

    steps: tuple[LevelStep, ...]
    p: float
    smallest_p: float
    out_of_reach: tuple[int, ...]
    trend: Trend | None
    paired: bool
    levels: int
    draws: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """Values with one row per block, columns in the order of the levels; a split lies before a column of `edges`.

    Data without blocks are one row with a column per value, and edges only where the level changes.
    """

    values: FloatArray
    edges: tuple[int, ...]
    paired: bool
    draws: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The edge of the clearest step, or both edges of the clearest dip; see `Split`."""

    edges: tuple[int, ...]
    p: float
    smallest_p: float
    smallest_by_edge: tuple[float, ...] = ()


def find_steps(logs: npt.ArrayLike, *, level: float = LEVEL, draws: int = DRAWS, seed: int = SEED) -> Ordered:
    """Steps along ordered levels that were measured in blocks.

    The largest split and the largest dip, levels between two others that differ from both, are tested by their maximum
    over permutations; where p <= `level`, the levels on either side and within are searched in the same way, each at
    its share of that level, so that all false steps together keep to it. Beside a step the other edge of a dip that so
    few repeats could not show is looked for (`recovery`). In the end each step is placed anew between its neighbours
    (Bai 1997).

    Args:
        logs: ln of the values, shape (blocks, levels), levels in their order; nan where a value is missing.
        level: probability of any false step where there is none.
        draws: number of permutations.
        seed: of the permutations.

    Raises:
        ValueError: there are fewer than two levels, or no block.
    """
    values = np.array(logs, dtype=np.float64)
    if values.ndim != _FEWEST_LEVELS or not values.shape[0] or values.shape[1] < _FEWEST_LEVELS:
        raise ValueError("blocks of at least two levels are needed")
    values[~np.isfinite(values)] = np.nan
    edges = tuple(range(1, values.shape[1]))
    return _segment(_Axis(values=values, edges=edges, paired=True, draws=draws, seed=seed), level)


def find_steps_unpaired(
    levels: Sequence[npt.ArrayLike], *, level: float = LEVEL, draws: int = DRAWS, seed: int = SEED
) -> Ordered:
    """Steps along ordered levels for data without blocks, such as a history with values per release.

    The same test on all values as one block, labels permuted among all of them. That takes every value as drawn
    independently of the others: a drift of the machine while the levels were measured one after the other is found
    as a step. There is no trend.

    Args:
        levels: ln of the values of each level in order, each of shape (n,) with any n; values that are not finite
            are left out.
        level: probability of any false step where there is none.
        draws: number of permutations.
        seed: of the permutations.

    Raises:
        ValueError: there are fewer than two levels, or one has no value.
    """
    groups = [group[np.isfinite(group)] for group in (np.asarray(values, dtype=np.float64) for values in levels)]
    if len(groups) < _FEWEST_LEVELS or not all(group.size for group in groups):
        raise ValueError("at least two levels with values are needed")
    edges = tuple(itertools.accumulate(group.size for group in groups))[:-1]
    values = np.concatenate(groups)[np.newaxis, :]
    return _segment(_Axis(values=values, edges=edges, paired=False, draws=draws, seed=seed), level)


def _segment(axis: _Axis, level: float) -> Ordered:
    """Binary segmentation, steps placed anew, and what each amounts to."""
    last = axis.values.shape[1]
    whole = _test(axis, 0, last)
    found = _place_anew(axis, _with_recoveries(axis, _search_beside(axis, (0, last), whole, level)))
    bounds = [0, *(split.edge for split in found), last]
    steps = [
        _step(axis, (before, split.edge, after), split.p)
        for before, split, after in zip(bounds, found, bounds[2:], strict=False)
    ]
    return Ordered(
        steps=tuple(step for step in steps if step is not None),
        p=whole.p,
        smallest_p=whole.smallest_p,
        out_of_reach=tuple(place for place, p in enumerate(whole.smallest_by_edge, start=1) if p > level),
        trend=page_trend(axis.values) if axis.paired else None,
        paired=axis.paired,
        levels=len(axis.edges) + 1,
        draws=axis.draws,
        seed=axis.seed,
    )


def _search(axis: _Axis, first: int, last: int, level: float) -> list[Split]:
    """Splits of the columns from `first` to before `last`, in their order."""
    if not _edges_within(axis, first, last).size:
        return []
    return _search_beside(axis, (first, last), _test(axis, first, last), level)


def _search_beside(axis: _Axis, bounds: tuple[int, int], found: _Found, level: float) -> list[Split]:
    """The edges of a split or a dip within `bounds` and those between them; none if its p is above the level."""
    if found.p > level:
        return []
    stops = [bounds[0], *found.edges, bounds[1]]
    share = level / (len(stops) - 1)
    parts = [_search(axis, first, last, share) for first, last in itertools.pairwise(stops)]
    edges = [Split(edge=edge, p=found.p, smallest_p=found.smallest_p) for edge in found.edges]
    return sorted([*edges, *itertools.chain(*parts)], key=lambda split: split.edge)


def _test(axis: _Axis, first: int, last: int) -> _Found:
    """A step or a dip, whichever explains the columns better of those that stand out; p allows for both searches."""
    values, edges = axis.values[:, first:last], _edges_within(axis, first, last) - first
    split = find_split(values, edges, draws=axis.draws, seed=axis.seed)
    dip = find_dip(values, edges, draws=axis.draws, seed=axis.seed)
    share = 1.0 if dip is None else _STEP_SHARE
    p_step, p_dip = _enlarge(split.p, share), 1.0 if dip is None else _enlarge(dip.p, 1 - share)
    smallest = tuple(_enlarge(p, share) for p in split.smallest_by_edge)
    chosen: tuple[int, ...] = (split.edge,)
    least = _enlarge(split.smallest_p, share)
    if dip is not None:
        least = min(least, _enlarge(dip.smallest_p, 1 - share))
        both = max(p_step, p_dip) <= LEVEL
        if dip.loss < loss_of_split(values, split.edge) if both else p_dip < p_step:
            chosen = (dip.first, dip.last)
    return _Found(
        edges=tuple(edge + first for edge in chosen),
        p=min(p_step, p_dip),
        smallest_p=least,
        smallest_by_edge=smallest,
    )


def _enlarge(p: float, share: float) -> float:
    """The p of one of several searches, which has this share of the error probability."""
    return min(1.0, p / share)


def _with_recoveries(axis: _Axis, found: list[Split]) -> list[Split]:
    """The splits, and beside each of them the other edge of a dip or a peak; in their order."""
    scatter = find_scatter(axis.values, axis.edges, paired=axis.paired) if found else None
    if scatter is None:
        return found
    bounds = [0, *(split.edge for split in found), axis.values.shape[1]]
    edges = {split.edge: split for split in found}
    for before, split, after in zip(bounds, found, bounds[2:], strict=False):
        for stretch in ((before, split.edge), (split.edge, after)):
            if (edge := _recovery(axis, split.edge, stretch, scatter)) is not None:
                edges.setdefault(edge, replace(split, edge=edge))
    return [edges[edge] for edge in sorted(edges)]


def _recovery(axis: _Axis, edge: int, stretch: tuple[int, int], scatter: Scatter) -> int | None:
    """The edge within a stretch beside the split at `edge` that goes the other way than the levels next to it."""
    first, last = stretch
    rising = _beside(axis, edge) < 0
    inside = _edges_within(axis, first, last) - first
    found = find_recovery(axis.values[:, first:last], inside, scatter, rising=rising)
    return None if found is None else first + found


def _beside(axis: _Axis, edge: int) -> float:
    """The log difference of the two levels at an edge, alone: the median over the blocks that have both."""
    place = axis.edges.index(edge)
    before, after = (0, *axis.edges)[place], (*axis.edges, axis.values.shape[1])[place + 1]
    d = _medians(axis.values[:, edge:after]) - _medians(axis.values[:, before:edge])
    return float(np.nanmedian(d)) if np.isfinite(d).any() else math.nan


def _medians(rows: FloatArray) -> FloatArray:
    """Of each row; nan where it has no value."""
    return np.array([np.nanmedian(row) if np.isfinite(row).any() else math.nan for row in rows])


def _place_anew(axis: _Axis, found: list[Split]) -> list[Split]:
    """Each split where it fits best between its neighbours: the first one was placed while the others disturbed it."""
    placed = list(found)
    for place in range(len(placed) if len(placed) > 1 else 0):
        before = placed[place - 1].edge if place else 0
        after = placed[place + 1].edge if place + 1 < len(placed) else axis.values.shape[1]
        inside = _edges_within(axis, before, after)
        edge = before + place_split(axis.values[:, before:after], inside - before)
        placed[place] = replace(placed[place], edge=edge)
    return placed


def _edges_within(axis: _Axis, first: int, last: int) -> IndexArray:
    return np.array([edge for edge in axis.edges if first < edge < last], dtype=np.intp)


def _step(axis: _Axis, bounds: tuple[int, int, int], p: float) -> LevelStep | None:
    """What a split amounts to; None if no block has values on both of its sides."""
    first, edge, last = bounds
    left, right = axis.values[:, first:edge], axis.values[:, edge:last]
    estimate = _paired_estimate(left, right) if axis.paired else _shift_estimate(left[0], right[0])
    if estimate is None:
        return None
    place = axis.edges.index(edge) + 1
    return LevelStep(
        before=place - 1,
        after=place,
        p=p,
        effect=estimate.centre,
        interval=estimate.interval,
        blocks=estimate.n if axis.paired else 0,
        beside=_beside(axis, edge),
    )


def _paired_estimate(left: FloatArray, right: FloatArray) -> Estimate | None:
    """Of the block differences of the medians on either side, at one look."""
    both = np.isfinite(left).any(axis=1) & np.isfinite(right).any(axis=1)
    if not both.any():
        return None
    d = np.nanmedian(right[both], axis=1) - np.nanmedian(left[both], axis=1)
    critical = fixed_critical(d.size, LEVEL) if d.size >= _FEWEST_BLOCKS else None
    return estimate_at([d], [(critical, None)])[0]


def _shift_estimate(left: FloatArray, right: FloatArray) -> Estimate | None:
    centre = np.median(left)
    left, right = (np.exp(np.clip(side - centre, -_WIDEST, _WIDEST)) for side in (left, right))
    return decide_unpaired(right, left, rule=Rule(delta=0.0), higher_is_better=True).estimate


def page_trend(logs: npt.ArrayLike) -> Trend | None:
    """Page's L = sum over blocks and levels of place times rank (Page 1963), tested in both directions.

    Exact for up to 8 levels and 30 blocks without ties, the normal distribution with the variance of the midranks
    otherwise.

    Args:
        logs: shape (blocks, levels), levels in their order; blocks with a gap are left out.

    Returns:
        None without a block without gaps.
    """
    values = np.asarray(logs, dtype=np.float64)
    values = values[np.isfinite(values).all(axis=1)]
    blocks, levels = values.shape
    if not blocks:
        return None
    scores = _ranks(values)
    places = np.arange(1, levels + 1, dtype=np.float64)
    statistic = float((scores + (levels + 1) / 2).sum(axis=0) @ places)
    mean = blocks * levels * (levels + 1) ** 2 / 4
    excess = abs(statistic - mean)
    untied = bool(np.isclose((scores**2).sum(axis=1), levels * (levels**2 - 1) / 12).all())
    exact = untied and levels <= _EXACT_LEVELS and blocks <= _EXACT_BLOCKS
    if exact:
        likely = _page_distribution(blocks, levels)
        p = 2 * float(likely[np.arange(likely.size) >= mean + excess - _ROUNDING].sum())
    else:
        variance = float(((places - places.mean()) ** 2).sum() * (scores**2).sum() / (levels - 1))
        p = math.erfc(excess / math.sqrt(2 * variance)) if variance > TIE else 1.0
    return Trend(statistic=statistic, p=min(p, 1.0), rising=statistic > mean, blocks=blocks, exact=exact)


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks within each row, equal values sharing one, centred on zero."""
    ranks = np.empty(values.shape)
    for row, target in zip(np.round(values, _DIGITS), ranks, strict=True):
        _, places, counts = np.unique(row, return_inverse=True, return_counts=True)
        target[:] = (np.cumsum(counts) - (counts - 1) / 2)[places] - (row.size + 1) / 2
    return ranks


@cache
def _page_distribution(blocks: int, levels: int) -> FloatArray:
    """Probability of each value of L from 0 on, without ties: all orders of a block are equally likely."""
    places = np.arange(1, levels + 1)
    orders = np.array(list(itertools.permutations(range(1, levels + 1))))
    one = np.bincount(orders @ places) / len(orders)
    likely = np.ones(1)
    for _ in range(blocks):
        likely = np.convolve(likely, one)
    return np.asarray(likely, dtype=np.float64)
