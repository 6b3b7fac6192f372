"""What must be doubted of a table of results, as warnings with stable codes.

About the table: ignored_columns, no_blocks, one_look, direction_assumed, order_of_file. About a comparison:
insufficient_blocks, insufficient_values, undecided, unstable, blocks_left_out, outliers, identical.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Final

import numpy as np

from pgstrata.compare.foreign.arms import Heaps, Pairs
from pgstrata.compare.foreign.stability import say_instability
from pgstrata.compare.foreign.steps import order_by_number
from pgstrata.model.answer import Comparison, ResultWarning, Verdict
from pgstrata.model.metrics import METRICS
from pgstrata.stats.anomaly import Stability
from pgstrata.stats.boundaries import MAX_BLOCKS, boundary
from pgstrata.stats.floor import MAD_TO_SD
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.unpaired import unpaired_critical
from pgstrata.units import Direction, render_percent_change

_NO_BLOCKS: Final = (
    "there is no column block, so nothing says which values were measured side by side: a machine that drifts from one "
    "environment to the next looks like a difference, and noise that both shared is not taken out. Each value must "
    "come from a run of its own. Stronger: let the environments take turns, and number the turns in a column block"
)
_NO_BLOCKS_ORDERED: Final = (
    "; along ordered levels such a drift is found as a step, or hides one, and there is no test for a trend"
)
_LOWER_BY_NAME: Final = re.compile(
    r"(?<![a-z])(latency|duration|time|elapsed|seconds?|secs?|ms|us|ns|cpu|p\d\d+|misses|faults|bytes|rss|errors)(?![a-z])"
)
_RATE: Final = re.compile(r"(per|/)[ _]*(s|secs?|seconds?|ms|min|minutes?|h|hours?)(?![a-z])")
_MOST_NAMED: Final = 3
_MANY_LEFT_OUT: Final = 0.2
# A block so many robust standard deviations from the middle, and at least so far, is named.
_FAR: Final = 6.0
_FAR_AT_LEAST: Final = math.log(1.1)
_FEWEST_FOR_FAR: Final = 5


def fewest_blocks(level: float) -> int:
    """Blocks that an interval of this level needs."""
    return boundary(level).first


def fewest_values(level: float) -> int:
    """Values of either arm that an interval of this level needs where both have as many."""
    return next(n for n in count(1) if unpaired_critical(n, n, level) is not None)


def doubt_table(
    *,
    metric: str,
    direction: Direction,
    ignored: Sequence[str],
    paired: bool,
    most_blocks: int,
    ordered: Sequence[str] = (),
) -> tuple[ResultWarning, ...]:
    """Doubts about all comparisons of a table.

    Args:
        metric: its name.
        direction: which way it is good.
        ignored: columns that are not used.
        paired: whether there are blocks.
        most_blocks: the largest number that one of the comparisons is made of.
        ordered: the levels of an ordered axis, empty where none was asked for.
    """
    warnings = []
    if not paired:
        text = f"{_NO_BLOCKS}{_NO_BLOCKS_ORDERED if ordered else ''}"
        warnings.append(ResultWarning(code="no_blocks", text=text))
    by_number = order_by_number(ordered) if ordered else ()
    if by_number:
        text = (
            f"the levels are taken in the order of the file, {_name_some(ordered)}; by number it would be "
            f"{_name_some(by_number)}: begin the file with a block in the order that you mean"
        )
        warnings.append(ResultWarning(code="order_of_file", text=text))
    if most_blocks > MAX_BLOCKS:
        text = (
            f"beyond {MAX_BLOCKS} blocks the rule holds for one look: if you look after each new block until a "
            "difference shows, one will"
        )
        warnings.append(ResultWarning(code="one_look", text=text))
    if metric not in METRICS and direction is Direction.HIGHER and _sounds_low(metric.casefold()):
        text = f"higher values of {metric} are taken as better; --lower-is-better if they are not"
        warnings.append(ResultWarning(code="direction_assumed", text=text))
    if ignored:
        named = f"{', '.join(ignored[:_MOST_NAMED])}{_rest(len(ignored))}"
        text = f"columns that are not used: {named}"
        warnings.append(ResultWarning(code="ignored_columns", text=text))
    return tuple(warnings)


def doubt_pairs(
    pairs: Pairs, comparison: Comparison, d: FloatArray, instability: Stability | None
) -> tuple[ResultWarning, ...]:
    """Doubts about one comparison in blocks; d are its oriented differences, shape (blocks,)."""
    doubts = [*_doubt_verdict(comparison), *_doubt_blocks(pairs)]
    if instability is not None:
        return (*doubts, say_instability(instability, pairs.environment, pairs.baseline))
    return (*doubts, *_doubt_values(pairs, d))


def doubt_heaps(heaps: Heaps, comparison: Comparison) -> tuple[ResultWarning, ...]:
    """Doubts about one comparison without blocks."""
    if comparison.verdict is not Verdict.INSUFFICIENT:
        return tuple(_doubt_verdict(comparison))
    n, m, fewest = heaps.values.size, heaps.base_values.size, fewest_values(comparison.level)
    text = f"{n} against {m} values support no interval at this level; {fewest} against {fewest} do"
    return (ResultWarning(code="insufficient_values", text=text),)


def _doubt_verdict(comparison: Comparison) -> Iterator[ResultWarning]:
    if comparison.verdict is Verdict.INSUFFICIENT:
        blocks, fewest = comparison.blocks, fewest_blocks(comparison.level)
        text = f"{blocks} usable {'block' if blocks == 1 else 'blocks'}, {fewest - blocks} more needed for an interval"
        yield ResultWarning(code="insufficient_blocks", text=text)
    if comparison.verdict is Verdict.INCONCLUSIVE and comparison.interval is not None:
        low, high = (render_percent_change(ratio) for ratio in (comparison.interval.low, comparison.interval.high))
        yield ResultWarning(code="undecided", text=f"the difference lies between {low} and {high}")


def _doubt_blocks(pairs: Pairs) -> Iterator[ResultWarning]:
    """Blocks that lack a row, by what they lack."""
    if not pairs.lacks:
        return
    by_lack: dict[tuple[str, ...], list[str]] = {}
    for block, lack in pairs.lacks.items():
        by_lack.setdefault(lack, []).append(block)
    parts = [f"{_name_blocks(blocks)} no row of {_name_some(lack)}" for lack, blocks in by_lack.items()]
    left, there = len(pairs.lacks), len(pairs.lacks) + len(pairs.blocks)
    text = (
        f"{left:,} of {there:,} blocks {'is' if left == 1 else 'are'} left out of {pairs.environment} against "
        f"{pairs.baseline}: {'; '.join(parts[:_MOST_NAMED])}{_rest(len(parts), 'and so on')}"
    )
    if left > _MANY_LEFT_OUT * there:
        text += ". What is left may be a selection"
    yield ResultWarning(code="blocks_left_out", text=text)


def _name_blocks(blocks: Sequence[str]) -> str:
    if len(blocks) == 1:
        return f"block {blocks[0]} has"
    return f"blocks {_name_some(blocks)} have"


def _name_some(names: Sequence[str]) -> str:
    return f"{', '.join(names[:_MOST_NAMED])}{_rest(len(names))}"


def _rest(number: int, words: str = "") -> str:
    left = number - _MOST_NAMED
    return (f", {words}" if words else f" and {left:,} more") if left > 0 else ""


def _doubt_values(pairs: Pairs, d: FloatArray) -> Iterator[ResultWarning]:
    name, base = pairs.environment, pairs.baseline
    if d.size and not d.any():
        text = f"the same values in every block of {name} and {base}: is it one series of results twice?"
        yield ResultWarning(code="identical", text=text)
    far = _find_far(pairs.blocks, d)
    if far:
        named = _name_some([f"block {block}" for block in far])
        text = (
            f"far from the other blocks of {name} against {base}: {named}; kept, and of limited weight: see what "
            "happened there"
        )
        yield ResultWarning(code="outliers", text=text)


def _find_far(blocks: Sequence[str], d: FloatArray) -> Mapping[str, float]:
    """Blocks whose differences lie far from the middle one, the farthest first."""
    if d.size < _FEWEST_FOR_FAR:
        return {}
    away = np.abs(d - np.median(d))
    limit = max(_FAR_AT_LEAST, _FAR * MAD_TO_SD * float(np.median(away)))
    places = [int(place) for place in np.argsort(-away, kind="stable") if away[place] > limit]
    return {blocks[place]: float(d[place]) for place in places}


def _sounds_low(metric: str) -> bool:
    """Whether the name of a metric sounds like something of which less is better; never more than a doubt."""
    return _RATE.search(metric) is None and _LOWER_BY_NAME.search(metric) is not None
