"""Which seconds of a run count: one warm-up cut for all runs of a cell in one block.

Only runs that were alone are cut. Slices have discarded slices of their own, and their rounds stand side by side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import is_
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.model.metrics import TPS
from pgstrata.model.observation import SteadyPart
from pgstrata.model.runs import RunRecord
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.steady import MIN_BATCHES, Cut, block_cut, choose_batch, is_shift, mser5

_HALF_A_SECOND: Final = 0.5
# An answer asks for the same runs from several sides, and has seldom more cells.
_KNOWN_CELLS: Final = 64


class _Members(tuple[RunRecord, ...]):
    """Runs of a cell in the order of their blocks, equal to others where they are the very same objects.

    Comparing what is in them would take longer than what is spared by knowing them again.
    """

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(tuple(map(id, self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Members) and len(self) == len(other) and all(map(is_, self, other))


def find_steady(runs: Iterable[RunRecord]) -> Mapping[str, SteadyPart]:
    """The part that counts of each run, by identity: MSER-5 on its seconds, the longest cut of a block for all of it.

    A cut is made only where there is a warm-up: where one run of the block shows it by itself (`Cut.clear`), so that a
    warm-up of one environment alone is cut from the first block on, or where the first seconds differ from those after
    the cut in the runs of the cell, in this block and those before (`is_shift`). Steady runs keep all their
    seconds so, and a cut stays what it is when further blocks come. It is never longer than half of the shortest run of
    the block.

    Which environment a run is of is not looked at, and one cut holds for all runs of a block. Where there is no
    difference between two of them, the block's difference after the cut is therefore as likely positive as negative,
    as it was before: this is all that the test on differences assumes.

    Args:
        runs: those that may enter an estimate, of any cells and blocks, with their series of throughput.

    Returns:
        Nothing for runs in slices, without that series, or too short (fewer than 11 seconds). A block with such a run
        is not cut: the others would be compared with a whole one.
    """
    cells: dict[str, list[RunRecord]] = defaultdict(list)
    for run in runs:
        if not run.together:
            cells[run.cell].append(run)
    found: dict[str, SteadyPart] = {}
    for members in cells.values():
        if not any(run.series for run in members):
            continue
        found |= _judge_cell(_Members(sorted(members, key=lambda run: run.block)))
    return found


def seconds_of(run: RunRecord) -> FloatArray:
    """Throughput by second, shape (seconds,); empty where there is none, or nothing to divide by.

    A report that came late covers several seconds, and all of them get its value.
    """
    series = next((series for series in run.series if series.metric == TPS.name), None)
    if series is None or not series.times:
        return np.empty(0)
    # The catalogue keeps series in single precision: a run that was just derived must give the same cut.
    values = np.array(series.values, dtype=np.float32).astype(np.float64)
    if abs(series.times[-1] - values.size) > _HALF_A_SECOND:
        middles = np.arange(_HALF_A_SECOND, series.times[-1])
        values = values[np.minimum(np.searchsorted(series.times, middles), values.size - 1)]
    return values if np.isfinite(values).all() and values.sum() > 0 else np.empty(0)


@lru_cache(maxsize=_KNOWN_CELLS)
def _judge_cell(runs: _Members) -> Mapping[str, SteadyPart]:
    """Of one cell, in the order of its blocks."""
    seconds = {run.identity: seconds_of(run) for run in runs}
    known = [run for run in runs if seconds[run.identity].size >= MIN_BATCHES]
    if not known:
        return {}
    gaps = {run.block for run in runs if seconds[run.identity].size < MIN_BATCHES}
    sizes = np.array([seconds[run.identity].size for run in known])
    rows = np.zeros((len(known), int(sizes.max())))
    for place, run in enumerate(known):
        rows[place, : sizes[place]] = seconds[run.identity]
    cuts = _cut_rows(rows, sizes)
    sums = np.concatenate([np.zeros((len(known), 1)), rows.cumsum(axis=1)], axis=1)
    found: dict[str, SteadyPart] = {}
    for start, end in _spans([run.block for run in known]):
        whole = known[start].block in gaps
        cut = 0 if whole else _choose_cut(cuts[start:end], sizes[:end], rows[:end])
        ratios = _after(sums[start:end], sizes[start:end], cut) / (sums[start:end, -1] / sizes[start:end])
        for place, ratio in zip(range(start, end), ratios.tolist(), strict=True):
            part = SteadyPart(cut=cut, ratio=ratio if cut else 1.0, steady=cuts[place].steady)
            found[known[place].identity] = part
    return found


def _cut_rows(rows: FloatArray, sizes: npt.NDArray[np.intp]) -> list[Cut]:
    """Each run by itself; runs of equal length at once."""
    cuts: dict[int, Cut] = {}
    for size in np.unique(sizes).tolist():
        places = np.flatnonzero(sizes == size)
        found = mser5(rows[places, :size], choose_batch(size))
        assert found is not None
        cuts |= dict(zip(places.tolist(), found, strict=True))
    return [cuts[place] for place in range(sizes.size)]


def _spans(blocks: Sequence[int]) -> list[tuple[int, int]]:
    """First place and end of each block's runs."""
    starts = [place for place, block in enumerate(blocks) if place == 0 or blocks[place - 1] != block]
    return list(zip(starts, [*starts[1:], len(blocks)], strict=True))


def _choose_cut(cuts: Sequence[Cut], sizes: npt.NDArray[np.intp], rows: FloatArray) -> int:
    """Seconds to be cut in a block; `cuts` are those of its runs, which are the last of the sizes and rows so far."""
    shortest = int(sizes[-len(cuts) :].min())
    longest = block_cut([cut for cut in cuts if cut.clear]) or block_cut(cuts)
    seconds = min(longest.seconds if longest else 0, shortest // 2)
    if longest is None or not seconds:
        return 0
    if longest.clear:
        return seconds
    # The first seconds, not all that would be cut, and the median of the rest: a dip, such as a checkpoint's, is no
    # warm-up, wherever it is.
    long = sizes > seconds
    behind = np.arange(rows.shape[1]) < sizes[long, np.newaxis]
    later = row_medians(np.where(behind, rows[long], np.nan)[:, seconds:])
    first = rows[long, : choose_batch(shortest)].mean(axis=1)
    return seconds if is_shift((first - later) / (rows[long].sum(axis=1) / sizes[long])) else 0


def row_medians(rows: FloatArray) -> FloatArray:
    """The median of each row, gaps left out, where every row has a value; `nanmedian` takes ten times as long."""
    ascending = np.sort(rows, axis=1)
    sizes = np.isfinite(rows).sum(axis=1)
    places = np.arange(len(rows))
    middle = ascending[places, (sizes - 1) // 2] + ascending[places, sizes // 2]
    return np.asarray(middle / 2, dtype=np.float64)


def _after(sums: FloatArray, sizes: npt.NDArray[np.intp], seconds: int) -> FloatArray:
    """Mean of the seconds after so many, in each row of running sums, which stay as they are behind a row's end."""
    return np.asarray((sums[:, -1] - sums[:, seconds]) / np.maximum(sizes - seconds, 1), dtype=np.float64)
