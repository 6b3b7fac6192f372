"""What must be doubted of what others measured, as warnings with stable codes.

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

from pgstrata.compare.factors.axes import order_by_number
from pgstrata.compare.pairing.arms import Arms, find_arm
from pgstrata.compare.pairing.pairs import Pairing
from pgstrata.compare.verdicts.doubts import Finding, warn_of_verdict
from pgstrata.model.answer import ResultWarning, Verdict
from pgstrata.model.metrics import METRICS
from pgstrata.model.question import Question
from pgstrata.stats.anomaly import Stability
from pgstrata.stats.boundaries import MAX_BLOCKS, boundary
from pgstrata.stats.floor import MAD_TO_SD
from pgstrata.stats.unpaired import unpaired_critical
from pgstrata.units import Direction

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


def doubt_import(
    question: Question, *, ignored: Sequence[str], most_blocks: int, ordered: Sequence[str]
) -> tuple[ResultWarning, ...]:
    """Doubts about all comparisons of a table.

    Args:
        question: what was asked of it.
        ignored: columns that are not used.
        most_blocks: the largest number that one of the comparisons is made of.
        ordered: the levels of an ordered axis, empty where none was asked for.
    """
    warnings = []
    if not question.blocks:
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
    metric = question.metric
    if metric not in METRICS and question.direction is Direction.HIGHER and _sounds_low(metric.casefold()):
        text = f"higher values of {metric} are taken as better; --lower-is-better if they are not"
        warnings.append(ResultWarning(code="direction_assumed", text=text))
    if ignored:
        named = f"{', '.join(ignored[:_MOST_NAMED])}{_rest(len(ignored))}"
        text = f"columns that are not used: {named}"
        warnings.append(ResultWarning(code="ignored_columns", text=text))
    return tuple(warnings)


def doubt_comparison(
    finding: Finding, arms: Arms, labels: Mapping[int, str], cells: Sequence[str]
) -> tuple[ResultWarning, ...]:
    """Doubts about one comparison.

    Args:
        finding: what it came to.
        arms: all observations, for what is missing.
        labels: names of blocks by their number.
        cells: those that it is over.
    """
    pairing, verdict = finding.pairing, finding.verdict
    if not pairing.paired and verdict is Verdict.INSUFFICIENT:
        n, m, fewest = pairing.values.size, pairing.base_values.size, fewest_values(finding.decision.alpha)
        text = f"{n} against {m} values support no interval at this level; {fewest} against {fewest} do"
        return (ResultWarning(code="insufficient_values", text=text),)
    if finding.instability is not None:
        return (*_doubt_blocks(pairing, arms, labels, cells), _say_instability(pairing, finding.instability))
    doubts = (*warn_of_verdict(finding), *_doubt_blocks(pairing, arms, labels, cells))
    return (*doubts, *_doubt_values(pairing, labels)) if pairing.paired else doubts


def _say_instability(pairing: Pairing, found: Stability) -> ResultWarning:
    """Two groups, or too many that lie apart."""
    name, base = pairing.environment, pairing.question.baseline
    if found.modes is not None:
        share = found.modes.share_high
        larger = max(share, 1 - share)
        text = (
            f"the blocks of {name} against {base} fall into two groups of {larger * 100:.0f} and "
            f"{(1 - larger) * 100:.0f} %: look for what differs between them"
        )
    else:
        text = (
            f"{found.rate * 100:.0f} % of the blocks of {name} against {base} lie more than "
            f"{math.expm1(found.limit) * 100:.0f} % from their median"
        )
    return ResultWarning(code="unstable", text=text)


def _doubt_blocks(
    pairing: Pairing, arms: Arms, labels: Mapping[int, str], cells: Sequence[str]
) -> Iterator[ResultWarning]:
    """Blocks that lack a row, by what they lack."""
    by_lack: dict[tuple[str, ...], list[str]] = {}
    for block, lack in _find_lacks(pairing, arms, cells).items():
        by_lack.setdefault(lack, []).append(labels[block])
    if not by_lack:
        return
    parts = [f"{_name_blocks(blocks)} no row of {_name_some(lack)}" for lack, blocks in by_lack.items()]
    left = sum(len(blocks) for blocks in by_lack.values())
    there = left + len(pairing.blocks)
    text = (
        f"{left:,} of {there:,} blocks {'is' if left == 1 else 'are'} left out of {pairing.environment} against "
        f"{pairing.question.baseline}: {'; '.join(parts[:_MOST_NAMED])}{_rest(len(parts), 'and so on')}"
    )
    if left > _MANY_LEFT_OUT * there:
        text += ". What is left may be a selection"
    yield ResultWarning(code="blocks_left_out", text=text)


def _find_lacks(pairing: Pairing, arms: Arms, cells: Sequence[str]) -> dict[int, tuple[str, ...]]:
    """What each block that is left out has no row of: patched, or patched on large where it is there in other cells."""
    sides = {
        name: [find_arm(arms, name, cell).blocks for cell in cells]
        for name in (pairing.environment, pairing.question.baseline)
    }
    found: dict[int, tuple[str, ...]] = {}
    for block in sorted(set().union(*(blocks for side in sides.values() for blocks in side))):
        said: list[str] = []
        for name, side in sides.items():
            absent = [cell for cell, blocks in zip(cells, side, strict=True) if block not in blocks]
            said += [name] if len(absent) == len(cells) else [f"{name} on {cell}" for cell in absent]
        if said:
            found[block] = tuple(said)
    return found


def _name_blocks(blocks: Sequence[str]) -> str:
    if len(blocks) == 1:
        return f"block {blocks[0]} has"
    return f"blocks {_name_some(blocks)} have"


def _name_some(names: Sequence[str]) -> str:
    return f"{', '.join(names[:_MOST_NAMED])}{_rest(len(names))}"


def _rest(number: int, words: str = "") -> str:
    left = number - _MOST_NAMED
    return (f", {words}" if words else f" and {left:,} more") if left > 0 else ""


def _doubt_values(pairing: Pairing, labels: Mapping[int, str]) -> Iterator[ResultWarning]:
    name, base, d = pairing.environment, pairing.question.baseline, pairing.differences
    if d.size and not d.any():
        text = f"the same values in every block of {name} and {base}: is it one series of results twice?"
        yield ResultWarning(code="identical", text=text)
    far = _find_far(pairing)
    if far:
        named = _name_some([f"block {labels[block]}" for block in far])
        text = (
            f"far from the other blocks of {name} against {base}: {named}; kept, and of limited weight: see what "
            "happened there"
        )
        yield ResultWarning(code="outliers", text=text)


def _find_far(pairing: Pairing) -> list[int]:
    """Blocks whose differences lie far from the middle one, the farthest first."""
    d = pairing.differences
    if d.size < _FEWEST_FOR_FAR:
        return []
    away = np.abs(d - np.median(d))
    limit = max(_FAR_AT_LEAST, _FAR * MAD_TO_SD * float(np.median(away)))
    return [pairing.blocks[place] for place in np.argsort(-away, kind="stable").tolist() if away[place] > limit]


def _sounds_low(metric: str) -> bool:
    """Whether the name of a metric sounds like something of which less is better; never more than a doubt."""
    return _RATE.search(metric) is None and _LOWER_BY_NAME.search(metric) is not None
