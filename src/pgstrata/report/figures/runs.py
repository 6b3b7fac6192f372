"""The chart of the runs themselves block by block: what lies far from the rest has a panel of its own, on one scale."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from pgstrata.model.answer import Answer
from pgstrata.model.metrics import METRICS
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures import vega
from pgstrata.report.figures.run_lines import Dot, label_environments, place_dots
from pgstrata.report.figures.vega import INK, Spec
from pgstrata.report.sentences.names import count

# A panel is split where its span is more than so many times what the runs of one environment scatter over.
_MOST_SCATTERS = 12
_LEAST_SCATTER = 0.02
_PADDING = 1.12
_LEAST_SPAN = 0.04
_WIDE = 8.0
_MOST_LABELS = 5


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
    rows = [_dot_row(answer, dot, panels) for dot in dots]
    charts = [_block_panel(answer, cell, panels, place, max(dot.block for dot in dots)) for place in range(len(panels))]
    own = {"scale": {"color": "independent", "shape": "independent"}}
    chart = charts[0] if len(charts) == 1 else vega.beside(charts, columns=1, spacing=8, resolve=own)
    title_of = METRICS[answer.study.plan.experiment.metric].title
    label = f"{title_of} of {count(len(rows), 'run')} by block, on a logarithmic scale; invalid runs are crosses"
    return vega.figure(title, label, chart, rows)


def _dot_row(answer: Answer, dot: Dot, panels: Sequence[Panel]) -> dict[str, Any]:
    """Usable runs are always within their panel; a cross that is not stands at its edge with an arrow."""
    place = next((place for place, panel in enumerate(panels) if dot.environment in panel.environments), 0)
    panel = panels[place]
    sign = "✕↓" if dot.value < panel.low else "✕↑" if dot.value > panel.high else "✕"
    return {
        "name": label_environments(answer.study.plan.experiment)[dot.environment],
        "block": dot.block,
        "place": round(dot.place, 4),
        "value": float(f"{min(max(dot.value, panel.low), panel.high):.5g}"),
        "valid": dot.valid,
        "panel": place,
        "sign": sign,
    }


def _block_panel(answer: Answer, cell: str, panels: Sequence[Panel], place: int, blocks: int) -> Spec:
    experiment = answer.study.plan.experiment
    panel, last = panels[place], place == len(panels) - 1
    numbers = {"values": list(range(1, blocks + 1)), "format": "d", "grid": False, "labels": last, "ticks": last}
    scale = {"type": "log", "domain": [panel.low, panel.high], "nice": False}
    ticks = {"format": "~s", "values": list(panel.ticks)}
    shared = {
        "x": vega.number(
            "place", title="block" if last else None, scale={"domain": [0.4, blocks + 0.6], "nice": False}, axis=numbers
        ),
        "y": vega.number("value", title=f"{experiment.metric}, log", scale=scale, axis=ticks),
    }
    good, bad = (f"datum.panel === {place} && {valid}" for valid in ("datum.valid", "!datum.valid"))
    joined = {"color": INK, "strokeWidth": 0.8, "opacity": 0.45}
    looks = vega.by_environment(experiment, "color", "shape", legend=last)
    layers = [
        *_baseline_layers(answer, cell, panel, scale),
        vega.mark("line", joined, where=good, detail=vega.name("block"), order=vega.number("place")),
        vega.mark("point", {"filled": True, "size": 58, "opacity": 1}, where=good, **looks),
        vega.mark("text", {"fontSize": 12, "color": INK}, where=bad, text=vega.name("sign")),
    ]
    return vega.layered(layers, width=vega.WHOLE, height=190 if len(panels) == 1 else 150, encoding=shared)


def _baseline_layers(answer: Answer, cell: str, panel: Panel, scale: Spec) -> list[Spec]:
    """The baseline's median as a line, in the panel that has it."""
    baseline = answer.study.plan.experiment.baseline
    runs = [dot.value for dot in place_dots(answer, cell) if dot.valid and dot.environment == baseline]
    if not runs or baseline not in panel.environments:
        return []
    look = {"color": INK, "strokeDash": [3, 3], "opacity": 0.6}
    return [vega.mark("rule", look, row={"at": median(runs)}, x=None, y=vega.number("at", scale=scale))]
