"""The environments of a table as levels of one ordered axis: which level brought the change."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.compare.axes import FEWEST_LEVELS, order_levels
from pgstrata.compare.foreign.arms import Place, sort_by_block, sort_by_place
from pgstrata.compare.foreign.table import Row
from pgstrata.errors import UsageError
from pgstrata.model.answer import ALL_CELLS, AxisStep, Interval, OrderedAxis
from pgstrata.stats.ordered import DRAWS, LEVEL, LevelStep, Ordered, find_steps, find_steps_unpaired
from pgstrata.stats.ranks import FloatArray

FACTOR: Final = "environment"
"""The axis of a table: its column of environments."""

_MOST_DRAWN: Final = 50_000_000
_FEWEST_DRAWS: Final = 999
_LETTERS: Final = re.compile(r"[^\d+-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ladder:
    """What all axes of a table have in common: levels in the order of the file, its cells, and its metric."""

    levels: tuple[str, ...]
    cells: tuple[str, ...]
    metric: str


def find_table_axes(
    rows: Sequence[Row], *, metric: str, cells: Sequence[str], paired: bool, source: str
) -> tuple[OrderedAxis, ...]:
    """Steps along the environments, in the order in which they first appear.

    With blocks: over the mean of all cells, then in each of several, exploratory. Without blocks: in each cell, which
    share the level (Bonferroni), by the unpaired form. An axis without p has fewer than three levels with values.

    Raises:
        UsageError: the table has fewer than three environments.
    """
    levels = tuple(dict.fromkeys(row.environment for row in rows))
    _refuse_few(levels, source)
    ladder = _Ladder(levels=levels, cells=tuple(cells), metric=metric)
    return _find_paired(ladder, rows) if paired else _find_unpaired(ladder, rows)


def order_by_number(levels: Sequence[str]) -> tuple[str, ...]:
    """The levels by version or number if they stand neither in that order nor in its reverse; else empty."""
    start = _LETTERS.match(levels[0])
    shared = start.group() if start is not None else ""
    bare = [level.removeprefix(shared) if level.startswith(shared) else level for level in levels]
    names = dict(zip(bare, levels, strict=True))
    for factor in ("server", FACTOR):
        ordered = order_levels(factor, bare)
        # levels that have no number stay as they were given
        if ordered == order_levels(factor, bare[::-1]):
            return () if tuple(bare) in {ordered, ordered[::-1]} else tuple(names[level] for level in ordered)
    return ()


def _refuse_few(levels: Sequence[str], source: str) -> None:
    if len(levels) >= FEWEST_LEVELS:
        return
    raise UsageError(
        f"an ordered axis takes {FEWEST_LEVELS} environments or more, and {source} has {len(levels)}: "
        f"{', '.join(levels)}", where="--ordered", remedy="leave the option out, or add the rows of other levels",
    )  # fmt: skip


def _find_paired(ladder: _Ladder, rows: Sequence[Row]) -> tuple[OrderedAxis, ...]:
    places = sort_by_block(rows)
    blocks = tuple(dict.fromkeys(row.block for row in rows))
    axes = [_paired_axis(ladder, places, ladder.cells, blocks)]
    if len(ladder.cells) > 1:
        axes += [_paired_axis(ladder, places, (cell,), blocks) for cell in ladder.cells]
    return tuple(axes)


def _paired_axis(
    ladder: _Ladder, places: Mapping[Place, Mapping[str, float]], cells: Sequence[str], blocks: Sequence[str]
) -> OrderedAxis:
    arms = [[places.get((level, cell), {}) for cell in cells] for level in ladder.levels]
    values = [[_mean_log([found.get(block) for found in arm]) for arm in arms] for block in blocks]
    logs = np.array(values, dtype=np.float64)
    logs = logs[np.isfinite(logs).sum(axis=1) > 1]
    there = np.flatnonzero(np.isfinite(logs).any(axis=0))
    levels = tuple(ladder.levels[place] for place in there)
    found = find_steps(logs[:, there], draws=_draws(logs.size)) if len(levels) >= FEWEST_LEVELS else None
    return _make_axis(ladder, levels, ALL_CELLS if len(cells) > 1 else cells[0], found, len(logs))


def _mean_log(values: Sequence[float | None]) -> float:
    """Mean ln over the cells; nan where one is missing."""
    known = [value for value in values if value is not None]
    return float(np.log(known).mean()) if len(known) == len(values) else math.nan


def _find_unpaired(ladder: _Ladder, rows: Sequence[Row]) -> tuple[OrderedAxis, ...]:
    places = sort_by_place(rows)
    level = LEVEL / len(ladder.cells)
    return tuple(_unpaired_axis(ladder, places, cell, level) for cell in ladder.cells)


def _unpaired_axis(ladder: _Ladder, places: Mapping[Place, FloatArray], cell: str, level: float) -> OrderedAxis:
    levels = tuple(name for name in ladder.levels if (name, cell) in places)
    groups = [np.log(places[name, cell]) for name in levels]
    enough = len(levels) >= FEWEST_LEVELS
    draws = _draws(sum(group.size for group in groups))
    found = find_steps_unpaired(groups, level=level, draws=draws) if enough else None
    return _make_axis(ladder, levels, cell, found, 0)


def _draws(size: int) -> int:
    """Fewer permutations of very large tables; the test holds for any number of them."""
    return max(_FEWEST_DRAWS, min(DRAWS, _MOST_DRAWN // max(size, 1)))


def _make_axis(ladder: _Ladder, levels: tuple[str, ...], cell: str, found: Ordered | None, blocks: int) -> OrderedAxis:
    trend = found.trend if found is not None else None
    return OrderedAxis(
        factor=FACTOR,
        levels=levels,
        cell=cell or ALL_CELLS,
        metric=ladder.metric,
        steps=tuple(_to_step(levels, step) for step in found.steps) if found is not None else (),
        p=found.p if found is not None else None,
        trend_p=trend.p if trend is not None else None,
        blocks=blocks,
        smallest_p=found.smallest_p if found is not None else None,
    )


def _to_step(levels: Sequence[str], step: LevelStep) -> AxisStep:
    interval = None
    if step.interval is not None:
        interval = Interval(low=_ratio(step.interval.low), high=_ratio(step.interval.high))
    return AxisStep(
        before=levels[step.before], after=levels[step.after], effect=_ratio(step.effect), interval=interval, p=step.p
    )


def _ratio(d: float) -> float:
    """After / before; infinite where no float can hold it."""
    try:
        return math.exp(d)
    except OverflowError:
        return math.inf
