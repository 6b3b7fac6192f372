"""The chart of the runs themselves block by block: what lies far from the rest has a panel of its own, on one scale."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from pgstrata.model.answer import Answer
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import METRICS
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.dots import Across, DotPanel, Dots, draw_dots
from pgstrata.report.figures.round_rows import Point
from pgstrata.report.figures.run_lines import Dot, place_dots
from pgstrata.report.figures.scales import Tick, exact_number
from pgstrata.report.sentences.names import count, name_environment

# A panel is split where its span is more than so many times what the runs of one environment scatter over.
_MOST_SCATTERS = 12
_LEAST_SCATTER = 0.02
_PADDING = 1.12
_LEAST_SPAN = 0.04
_WIDE = 8.0
_MOST_LABELS = 5
_HEIGHT, _HEIGHT_OF_SEVERAL = 190.0, 150.0


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
        return tuple(inside[:: math.ceil(len(inside) / _MOST_LABELS)])
    size = 10.0 ** math.floor(math.log10((high - low) / _MOST_LABELS))
    step = next(size * digit for digit in (1, 2, 2.5, 5, 10) if (high - low) / (size * digit) <= _MOST_LABELS)
    first, last = math.ceil(low / step), math.floor(high / step)
    return tuple(float(f"{place * step:.10g}") for place in range(first, last + 1))


def draw_by_block(answer: Answer, cell: str, title: str) -> Figure | None:
    """Every run of a cell, block by block; those of a block are joined, so that drift shows as blocks that wander.

    The axis is logarithmic: the same height is the same ratio, in every panel. What lies far from the rest has a panel
    of its own, so that differences within a block can be seen on either side.
    """
    dots = place_dots(answer, cell)
    panels = arrange_panels(dots)
    if not panels:
        return None
    drawn = [_block_panel(answer.study.plan.experiment, own, panel) for own, panel in _deal(dots, panels)]
    across = Across(title="block", low=0.4, high=max(dot.block for dot in dots) + 0.6)
    height = _HEIGHT if len(panels) == 1 else _HEIGHT_OF_SEVERAL
    title_of = METRICS[answer.study.plan.experiment.metric].title
    label = f"{title_of} of {count(len(dots), 'run')} by block, on a logarithmic scale; invalid runs are crosses"
    return Figure(title=title, label=label, draw=partial(draw_dots, drawn, across, height=height))


def _deal(dots: Sequence[Dot], panels: Sequence[Panel]) -> Iterator[tuple[list[Dot], Panel]]:
    """The dots of each panel; those of an environment without one are in the first."""
    places = {name: place for place, panel in enumerate(panels) for name in panel.environments}
    for place, panel in enumerate(panels):
        yield [dot for dot in dots if places.get(dot.environment, 0) == place], panel


def _block_panel(experiment: Experiment, dots: Sequence[Dot], panel: Panel) -> DotPanel:
    """Usable runs are always within their panel; a cross that is not stands at its edge with an arrow."""
    valid = [dot for dot in dots if dot.valid]
    blocks: dict[int, list[Point]] = {}
    found: dict[str, list[Point]] = {dot.environment: [] for dot in dots}
    for dot in sorted(valid, key=lambda dot: dot.place):
        point = (dot.place, _clamp(dot.value, panel))
        blocks.setdefault(dot.block, []).append(point)
        found[dot.environment].append(point)
    baseline = [dot.value for dot in valid if dot.environment == experiment.baseline]
    return DotPanel(
        title=f"{experiment.metric}, log",
        low=panel.low,
        high=panel.high,
        log=True,
        ticks=tuple(Tick(value=value, text=exact_number(value)) for value in panel.ticks),
        dots=tuple(
            Dots(name=name_environment(each, experiment), place=place, points=tuple(found[each.name]))
            for place, each in enumerate(experiment.environments)
            if each.name in found
        ),
        chains=tuple(map(tuple, blocks.values())),
        level=_clamp(median(baseline), panel) if baseline and experiment.baseline in panel.environments else None,
        signs=tuple((dot.place, _clamp(dot.value, panel), _sign(dot, panel)) for dot in dots if not dot.valid),
    )


def _clamp(value: float, panel: Panel) -> float:
    return min(max(value, panel.low), panel.high)


def _sign(dot: Dot, panel: Panel) -> str:
    return "✕↓" if dot.value < panel.low else "✕↑" if dot.value > panel.high else "✕"
