"""The runs of a cell on panels of one relative scale: what lies far from the rest has a panel of its own.

Pure: how runs are grouped, which stretch of a logarithmic axis each panel covers, and where its ticks stand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from pgstrata.report.figures.run_points import Dot

# A panel is split where its span is more than so many times what the runs of one environment scatter over.
_MOST_SCATTERS = 12
_LEAST_SCATTER = 0.02
_PADDING = 1.12
_LEAST_SPAN = 0.04
_WIDE = 8.0
_MOST_TICKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Environments that lie near each other, and the stretch of the axis that shows all their usable runs."""

    environments: tuple[str, ...]
    low: float
    high: float
    ticks: tuple[float, ...]


def arrange_panels(dots: Sequence[Dot]) -> tuple[Panel, ...]:
    """Panels from the highest values to the lowest, all with the same ratio between their ends.

    Empty where nothing has a logarithm. Of an environment without any usable run the others are taken.
    """
    ranges = _ranges(dots)
    if not ranges:
        return ()
    scatter = max(_LEAST_SCATTER, median(high - low for low, high in ranges.values()))
    groups = _split(sorted(ranges, key=lambda name: ranges[name]), ranges, _MOST_SCATTERS * scatter)
    ends = [(min(ranges[name][0] for name in group), max(ranges[name][1] for name in group)) for group in groups]
    span = max(_LEAST_SPAN, _PADDING * max(high - low for low, high in ends))
    return tuple(
        _panel(group, (low + high - span) / 2, (low + high + span) / 2)
        for group, (low, high) in zip(reversed(groups), reversed(ends), strict=True)
    )


def _panel(names: Sequence[str], low: float, high: float) -> Panel:
    ends = math.exp(low), math.exp(high)
    return Panel(environments=tuple(names), low=ends[0], high=ends[1], ticks=choose_ticks(*ends))


def _ranges(dots: Sequence[Dot]) -> Mapping[str, tuple[float, float]]:
    """Logarithms of the smallest and the largest value of each environment."""
    values: dict[str, list[float]] = {}
    usable = {dot.environment for dot in dots if dot.valid}
    for dot in dots:
        if dot.value > 0 and (dot.valid or dot.environment not in usable):
            values.setdefault(dot.environment, []).append(math.log(dot.value))
    return {name: (min(found), max(found)) for name, found in values.items()}


def _split(names: list[str], ranges: Mapping[str, tuple[float, float]], most: float) -> list[list[str]]:
    """Names from the lowest to the highest, parted at their widest gap as long as a part spans more than `most`."""
    highest = [max(ranges[name][1] for name in names[: place + 1]) for place in range(len(names))]
    gaps = [ranges[name][0] - top for name, top in zip(names[1:], highest, strict=False)]
    if not gaps or highest[-1] - ranges[names[0]][0] <= most or max(gaps) <= 0:
        return [names]
    place = gaps.index(max(gaps)) + 1
    return [*_split(names[:place], ranges, most), *_split(names[place:], ranges, most)]


def choose_ticks(low: float, high: float) -> tuple[float, ...]:
    """A few round numbers between two positive ends of a logarithmic axis."""
    if high / low > _WIDE:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        found = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        inside = [value for value in found if low <= value <= high]
        return tuple(inside[:: math.ceil(len(inside) / _MOST_TICKS)])
    size = 10.0 ** math.floor(math.log10((high - low) / _MOST_TICKS))
    step = next(size * digit for digit in (1, 2, 2.5, 5, 10) if (high - low) / (size * digit) <= _MOST_TICKS)
    first, last = math.ceil(low / step), math.floor(high / step)
    return tuple(float(f"{place * step:.10g}") for place in range(first, last + 1))
