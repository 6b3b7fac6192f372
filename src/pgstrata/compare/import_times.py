"""Checks of time stamps and order in other tools' results: environments that took no turns, repeats that drift."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final

import numpy as np

from pgstrata.compare.pairing.pairs import to_ratio
from pgstrata.model.doubts import Doubt, DriftingRepeats, InSequence, NamedDoubt
from pgstrata.model.observation import Observation
from pgstrata.model.question import Question
from pgstrata.model.runs import Validity
from pgstrata.sources.moments import parse_moment
from pgstrata.stats.ranks import FloatArray

_FEWEST: Final = 2
_FEWEST_TURNS: Final = 3
_FEWEST_REPEATS: Final = 3
_MOST_REPEATS: Final = 200
_FEWEST_UNTIMED: Final = 3
"""Minimum number of series for a test by the order of the file, if rows have no time stamps."""
_SURE: Final = 2.576
"""Quantile of the normal distribution for a two-sided test at 1 %."""
_DRIFT_AT_LEAST: Final = math.log(1.01)

_Starts = dict[tuple[str, str], list[float]]


def doubt_times(question: Question, observations: Sequence[Observation]) -> Iterator[Doubt]:
    """Doubts about the order in which environments and their repeats were measured.

    Args:
        question: which metric, which environments and cells, and whether there are blocks.
        observations: in the order of their source; values that count as one have been combined.
    """
    apart, told = find_sequences(observations, question.baseline, question.environments)
    if question.blocks:
        if question.blocks >= _FEWEST_TURNS and apart:
            yield NamedDoubt(code="turns_contradicted", names=apart)
        return
    if apart:
        yield InSequence(environments=apart, baseline=question.baseline, of=told)
    yield from _find_drift(question, observations)


def find_sequences(
    observations: Sequence[Observation], baseline: str, environments: Sequence[str]
) -> tuple[tuple[str, ...], int]:
    """Environments of which, in every cell, all runs began before or after all runs of the baseline.

    Also returns how many environments could be checked. All observations need time stamps, and both environments at
    least two runs.
    """
    starts = _collect_starts(observations)
    cells = dict.fromkeys(cell for _, cell in starts)
    apart, told = [], 0
    for name in environments:
        shared = [cell for cell in cells if (name, cell) in starts and (baseline, cell) in starts]
        sides = [(starts[name, cell], starts[baseline, cell]) for cell in shared]
        if sum(map(len, (one for one, _ in sides))) < _FEWEST or sum(map(len, (two for _, two in sides))) < _FEWEST:
            continue
        told += 1
        if all(max(one) < min(two) or min(one) > max(two) for one, two in sides):
            apart.append(name)
    return tuple(apart), told


def _collect_starts(observations: Sequence[Observation]) -> _Starts:
    """Starts in seconds since 1970 by target and cell; empty if any start is unknown."""
    found: _Starts = defaultdict(list)
    for each in observations:
        moment = parse_moment(each.span.started) if each.span is not None else None
        if moment is None:
            return {}
        found[each.target, each.cell].append(moment.timestamp())
    return found


def _find_drift(question: Question, observations: Sequence[Observation]) -> Iterator[DriftingRepeats]:
    """Kendall's S of repeats and their order, summed over series as strata (Hirsch et al. 1982, seasonal Kendall test).

    Without a trend each S has mean 0 and variance n (n - 1) (2 n + 5) / 18 (Kendall 1975). Ties make the variance
    smaller, so the test is conservative. With a few series the sum is nearly normal; it is corrected for continuity.
    """
    valid = [each for each in observations if each.validity is not Validity.INVALID]
    timed = bool(_collect_starts(valid))
    series = [each for each in _in_order(question, valid, timed=timed) if each.size >= _FEWEST_REPEATS]
    total = sum(map(_kendall, series))
    variance = sum(n * (n - 1) * (2 * n + 5) / 18 for n in (values.size for values in series))
    if len(series) < (1 if timed else _FEWEST_UNTIMED) or abs(total) - 1 <= _SURE * math.sqrt(variance):
        return
    changes = np.array([values[-1] - values[0] for values in series])
    change = float(np.median(changes))
    if change * total > 0 and abs(change) >= _DRIFT_AT_LEAST:
        alike = int((changes * change > 0).sum())
        yield DriftingRepeats(change=to_ratio(change), alike=alike, of=len(series), timed=timed)


def _in_order(question: Question, observations: Sequence[Observation], *, timed: bool) -> list[FloatArray]:
    """Logarithms of the repeats of each environment in each cell, in order of time, or else of their source."""
    groups: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for place, each in enumerate(observations):
        moment = parse_moment(each.span.started) if timed and each.span is not None else None
        at = moment.timestamp() if moment is not None else float(place)
        groups[each.target, each.cell].append((at, math.log(each.measurements[question.metric])))
    # those that began on the same day stay in the order of their source
    ordered = [sorted(group, key=itemgetter(0)) for group in groups.values()]
    return [np.array([value for _, value in group])[:_MOST_REPEATS] for group in ordered]


def _kendall(values: FloatArray) -> int:
    """The number of pairs that rise, minus the number of pairs that fall."""
    signs = np.sign(values[None, :] - values[:, None])
    return int(np.triu(signs, k=1).sum())
