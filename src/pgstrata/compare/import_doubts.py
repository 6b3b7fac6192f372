"""What must be doubted of what others measured: of a table as a whole, and of its comparisons."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Final

import numpy as np

from pgstrata.compare.pairing.arms import Arms, find_arm
from pgstrata.compare.pairing.pairs import Pairing
from pgstrata.compare.verdicts.doubts import Finding, warn_of_opening, warn_of_validity, warn_of_verdict
from pgstrata.model.answer import Verdict
from pgstrata.model.doubts import BlocksLeftOut, DependentValues, Doubt, NamedDoubt, OrderOfFile, Outliers, TooFewValues
from pgstrata.model.levels import order_by_number
from pgstrata.model.metrics import METRICS
from pgstrata.model.observation import Observation, Repeats
from pgstrata.model.question import Question
from pgstrata.stats.floor import MAD_TO_SD
from pgstrata.stats.unpaired import unpaired_critical
from pgstrata.units import Direction, count_digits

_LOWER_BY_NAME: Final = re.compile(
    r"(?<![a-z])(latency|duration|time|elapsed|seconds?|secs?|ms|us|ns|cpu|p\d\d+|misses|faults|bytes|rss|errors)(?![a-z])"
)
_RATE: Final = re.compile(r"(per|/)[ _]*(s|secs?|seconds?|ms|min|minutes?|h|hours?)(?![a-z])")
_MANY_LEFT_OUT: Final = 0.2
# A block so many robust standard deviations from the middle, and at least so far, is named.
_FAR: Final = 6.0
_FAR_AT_LEAST: Final = math.log(1.1)
_FEWEST_FOR_FAR: Final = 5
_DIGITS: Final = 4

_Lack = tuple[str, str | None]


def fewest_values(level: float) -> int:
    """Values of either arm that an interval of this level needs where both have as many."""
    return next(n for n in count(1) if unpaired_critical(n, n, level) is not None)


def doubt_import(
    question: Question,
    *,
    ignored: Sequence[str],
    ordered: Sequence[str],
    dependent: DependentValues | None,
    repeats: Repeats | None = None,
) -> Iterator[Doubt]:
    """Doubts about all comparisons of a table.

    Args:
        question: what was asked of it.
        ignored: columns that are not used.
        ordered: the levels of an ordered axis, empty where none was asked for.
        dependent: values that count as one.
        repeats: how they were measured, as the table says.
    """
    by_number = order_by_number(ordered) if ordered else ()
    mixed = by_number not in {(), tuple(ordered), tuple(ordered)[::-1]}
    metric = question.metric
    if not question.blocks:
        apart = repeats if repeats is Repeats.ONE_AFTER_ANOTHER else ""
        yield NamedDoubt(code="no_blocks", names=tuple(ordered), of=apart)
    if dependent is not None:
        yield dependent
    if mixed:
        yield OrderOfFile(levels=tuple(ordered), by_number=by_number)
    if metric not in METRICS and question.direction is Direction.HIGHER and _sounds_low(metric.casefold()):
        yield NamedDoubt(code="direction_assumed", names=(metric,))
    if ignored:
        yield NamedDoubt(code="ignored_columns", names=tuple(ignored))


def doubt_repeats(question: Question, observations: Sequence[Observation]) -> Iterator[NamedDoubt]:
    """Two cells whose values are the same in every environment, or two environments with the same in every cell.

    Only series of at least two values count in which every value has at least `_DIGITS` significant digits: short
    numbers may agree by chance.
    """
    series: dict[tuple[str, str], list[float]] = {}
    for each in observations:
        series.setdefault((each.target, each.cell), []).append(each.measurements[question.metric])
    for names in _find_repeats({(cell, name): values for (name, cell), values in series.items()}):
        yield NamedDoubt(code="repeated_cells", names=names)
    # blocks are compared one by one, where `identical` tells it
    for names in _find_repeats(series) if not question.blocks else ():
        yield NamedDoubt(code="repeated_environments", names=names)


def _find_repeats(series: Mapping[tuple[str, str], Sequence[float]]) -> Iterator[tuple[str, ...]]:
    """First names of keys that have the same values for all the same second names."""
    rows: dict[str, list[tuple[str, tuple[float, ...]]]] = {}
    for (name, other), values in series.items():
        rows.setdefault(name, []).append((other, tuple(values)))
    alike: dict[tuple[tuple[str, tuple[float, ...]], ...], list[str]] = {}
    for name, row in rows.items():
        found = [value for _, values in row for value in values]
        if len(found) > 1 and all(count_digits(value) >= _DIGITS for value in found):
            alike.setdefault(tuple(sorted(row)), []).append(name)
    yield from (tuple(names) for names in alike.values() if len(names) > 1)


def doubt_comparison(finding: Finding, arms: Arms, labels: Mapping[int, str], cells: Sequence[str]) -> Iterator[Doubt]:
    """Doubts about one comparison.

    Args:
        finding: what it came to.
        arms: all observations, for what is missing.
        labels: names of blocks by their number.
        cells: those that it is over.
    """
    pairing = finding.pairing
    for side in (pairing.arm, pairing.base):
        yield from warn_of_validity(side)
        if pairing.cell in pairing.question.run_seconds:
            yield from warn_of_opening(pairing, side)
    if not pairing.paired and finding.verdict is Verdict.INSUFFICIENT:
        values = (pairing.values.size, pairing.base_values.size)
        yield TooFewValues(values=values, needed=fewest_values(finding.decision.alpha))
        return
    verdict, left = warn_of_verdict(finding), _doubt_blocks(pairing, arms, labels, cells)
    if finding.instability is not None:
        yield from (*left, *verdict)
        return
    yield from (*verdict, *left)
    if pairing.paired:
        yield from _doubt_values(pairing, labels)


def _doubt_blocks(pairing: Pairing, arms: Arms, labels: Mapping[int, str], cells: Sequence[str]) -> Iterator[Doubt]:
    """Blocks that lack a row, by what they lack."""
    lacks: dict[tuple[_Lack, ...], list[str]] = {}
    for block, lack in _find_lacks(pairing, arms, cells).items():
        lacks.setdefault(lack, []).append(labels[block])
    left, used = sum(map(len, lacks.values())), len(pairing.blocks)
    if left:
        yield BlocksLeftOut(
            environments=(pairing.environment, pairing.question.baseline),
            lacking={lack: tuple(blocks) for lack, blocks in lacks.items()},
            used=used,
            many=left > _MANY_LEFT_OUT * (left + used),
        )


def _find_lacks(pairing: Pairing, arms: Arms, cells: Sequence[str]) -> dict[int, tuple[_Lack, ...]]:
    """What each block that is left out has no row of."""
    sides = {
        name: [find_arm(arms, name, cell).blocks for cell in cells]
        for name in (pairing.environment, pairing.question.baseline)
    }
    found: dict[int, tuple[_Lack, ...]] = {}
    for block in sorted(set().union(*(blocks for side in sides.values() for blocks in side))):
        lacks: list[_Lack] = []
        for name, side in sides.items():
            absent = [cell for cell, blocks in zip(cells, side, strict=True) if block not in blocks]
            lacks += [(name, None)] if len(absent) == len(cells) else [(name, cell) for cell in absent]
        if lacks:
            found[block] = tuple(lacks)
    return found


def _doubt_values(pairing: Pairing, labels: Mapping[int, str]) -> Iterator[Doubt]:
    names, d = (pairing.environment, pairing.question.baseline), pairing.differences
    if d.size and not d.any():
        yield NamedDoubt(code="identical", names=names)
    far = _find_far(pairing)
    if far:
        yield Outliers(environments=names, blocks=tuple(labels[block] for block in far))


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
