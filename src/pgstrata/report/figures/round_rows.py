"""Rows of the charts of a cell in slices: one for each environment, on one logarithmic scale. As SVG.

Each row has the name of its environment, so that colour tells nothing alone. The same height is the same ratio.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from pgstrata.compare.rounds import CellRounds
from pgstrata.model.experiment import Experiment
from pgstrata.report.figures.labels import LINE, thin_out
from pgstrata.report.figures.plot_marks import text
from pgstrata.report.figures.plot_rows import WIDTH
from pgstrata.report.figures.run_lines import break_label
from pgstrata.report.figures.vega import COLOURS, INK
from pgstrata.report.sentences.names import name_environment
from pgstrata.units import render_percent_change

MOST_ENVIRONMENTS: Final = 12
LEFT: Final = 46.0
RIGHT: Final = WIDTH - 4.0
HEAD: Final = 17.0
"""Pixels for a line of text above a row."""
HEIGHT: Final = 44.0
GAP: Final = 7.0
_NAME: Final = 58
_QUANTILE: Final = 0.98
"""Share of the values that lie within a row; the others stand at its edge."""
_ROOM: Final = 1.15
_LEAST_SPAN: Final = math.log(1.02)
_MOST_SPAN: Final = math.log(4)

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What all rows share.

    `names` for people, in lines, and `colours` are by environment, in the order of the rows. `middles` are the values
    in the middle of the rows, `half` is half of their height as a logarithm. `bins` is the most points of a line;
    `label` tells the chart to those who do not see it.
    """

    found: CellRounds
    names: Mapping[str, str]
    colours: Mapping[str, str]
    middles: Mapping[str, float]
    half: float
    bins: int
    label: str

    @property
    def head(self) -> float:
        """Pixels above each row, for the name with most lines."""
        return HEAD + LINE * max(name.count("\n") for name in self.names.values())

    @property
    def tops(self) -> Mapping[str, float]:
        """Where the row of each environment begins."""
        return {name: place * (self.head + HEIGHT + GAP) + self.head for place, name in enumerate(self.names)}

    @property
    def bottom(self) -> float:
        """Where the lowest row ends."""
        return len(self.names) * (self.head + HEIGHT + GAP) - GAP

    def y(self, ratio: float, top: float) -> float:
        """The pixel of a ratio to the middle of a row, at its edge where the row ends before."""
        share = max(-1.0, min(1.0, math.log(ratio) / self.half)) if ratio > 0 else -1.0
        return top + HEIGHT / 2 * (1 - share)


def make_sheet(
    found: CellRounds, experiment: Experiment, middles: Mapping[str, float], half: float, bins: int, label: str
) -> Sheet:
    """With a row for each environment in `middles`, as far as there is room."""
    places = {each.name: place for place, each in enumerate(experiment.environments)}
    shown = choose_environments(experiment, middles)
    return Sheet(
        found=found,
        names={name: break_label(name_environment(experiment.environment(name), experiment), _NAME) for name in shown},
        colours={name: COLOURS[places[name] % len(COLOURS)] for name in shown},
        middles=middles,
        half=half,
        bins=bins,
        label=label,
    )


def choose_environments(experiment: Experiment, known: Mapping[str, object]) -> list[str]:
    """At most twelve of those that are known, in their order, the baseline among them."""
    names = [each.name for each in experiment.environments if each.name in known]
    shown = names[:MOST_ENVIRONMENTS]
    if experiment.baseline in names and experiment.baseline not in shown:
        shown[-1] = experiment.baseline
    return shown


def say_left(known: Mapping[str, object]) -> str:
    """How many environments there are, behind a title; empty where all are drawn."""
    return f"; {MOST_ENVIRONMENTS} of {len(known)} environments" if len(known) > MOST_ENVIRONMENTS else ""


def find_half(sizes: Sequence[float]) -> float:
    """Half of the height of a row that holds nearly all of these sizes; both are absolute logarithms of ratios."""
    size = sorted(sizes)[min(len(sizes) - 1, int(_QUANTILE * len(sizes)))] if sizes else 0.0
    return min(max(_ROOM * size, _LEAST_SPAN), _MOST_SPAN)


def say_span(half: float) -> str:
    """As changes: -7.4 % to +8.0 %."""
    return f"{render_percent_change(math.exp(-half))} to {render_percent_change(math.exp(half))}"


def wrap(sheet: Sheet, height: float, parts: Sequence[str]) -> str:
    """The whole chart."""
    head = f'<svg class="plot" viewBox="0 0 {WIDTH} {height:.0f}" fill="none" stroke-linejoin="round">'
    return "".join([head, f"<desc>{escape(sheet.label)}</desc>", *parts, "</svg>"])


def draw_frame(name: str, top: float, middle: str) -> Iterator[str]:
    """The name of a row, lines at both ends and at its middle, and what stands there."""
    for above, line in enumerate(reversed(name.split("\n"))):
        yield text(0, top - 5 - LINE * above, line, more=' font-weight="600"')
    ends = f"M{LEFT},{top}H{RIGHT}M{LEFT},{top + HEIGHT}H{RIGHT}"
    yield f'<path d="{ends}" stroke="{INK}" opacity=".13"/>'
    half = f'd="M{LEFT},{top + HEIGHT / 2}H{RIGHT}"'
    yield f'<path {half} stroke="{INK}" stroke-dasharray="3 3" opacity=".35"/>'
    yield text(LEFT - 5, top + HEIGHT / 2 + 4, middle, anchor="end")


def draw_line(points: Sequence[Point]) -> str:
    """As data of a path; a single point is a short dash."""
    if not points:
        return ""
    # to tenths of a pixel, so that errors of relative steps do not add up
    places = [(round(x, 1), round(y, 1)) for x, y in points]
    (x, y), *rest = places
    if not rest:
        return f"M{x - 1:.1f},{y:.1f}h2"
    return f"M{x:.1f},{y:.1f}" + "".join(f"l{bx - ax:.1f},{by - ay:.1f}" for (ax, ay), (bx, by) in pairwise(places))


def draw_axis(texts: Sequence[str], xs: Sequence[float], title: str, bottom: float) -> tuple[list[str], float]:
    """Numbers below the rows, as many as there is room for, and what they are; and where that ends."""
    y = bottom + 15
    shown = zip(xs, texts, thin_out(texts, xs), strict=True)
    parts = [text(x, y, said, anchor="middle") for x, said, here in shown if here]
    return [*parts, text((LEFT + RIGHT) / 2, y + 15, title, anchor="middle")], y + 15
