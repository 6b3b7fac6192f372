"""Rows of bars across a chart: where each stands, with its name at its left, or above it where a chart is narrow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.report.figures import vega
from pgstrata.report.figures.run_lines import break_label, lines_above
from pgstrata.report.figures.vega import INK, Row, Spec

_STEP: Final = 27.0
_HALF: Final = 8.5
_LABELS: Final = 230
_LINE: Final = 12.0
_LINE_ABOVE: Final = 13.0
_APART: Final = 9.0
"""Pixels between a bar and the texts above the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BarRows:
    """Rows from above, in pixels: the middles of their bars, their names, and the height of all.

    `width` is that of the bars at most. `tops` are where texts above the bars begin, `lines` these texts; both are
    empty where names stand at the left.
    """

    middles: tuple[float, ...]
    names: tuple[str, ...]
    height: float
    width: float
    tops: tuple[float, ...] = ()
    lines: tuple[tuple[str, ...], ...] = ()

    @property
    def ticks(self) -> int:
        """Numbers that have room below the bars."""
        return 4 if self.tops else 6

    def fields(self, place: int) -> dict[str, float]:
        """The fields `y`, `above` and `below` of the row: middle and edges of its bar."""
        middle = self.middles[place]
        return {"y": middle, "above": middle - _HALF, "below": middle + _HALF}

    def y(self, field: str) -> Spec:
        """The channel of a field in pixels."""
        scale = {"domain": [self.height, 0], "nice": False, "zero": False}
        return vega.number(field, scale=scale, axis=None if self.tops else self._axis())

    def _axis(self) -> Spec:
        """Names in lines; as JSON they end no string of the expression."""
        names = {f"{middle:g}": break_label(name) for middle, name in zip(self.middles, self.names, strict=True)}
        return {
            "title": None,
            "values": list(self.middles),
            "labelExpr": f"split({json.dumps(names)}[datum.value], '\\n')",
            "grid": False,
            "ticks": False,
            "domain": False,
            "labelLimit": _LABELS,
            "labelPadding": 8,
            "labelLineHeight": _LINE,
            # each row keeps its name
            "labelOverlap": False,
        }

    def texts(self) -> list[Row]:
        """Rows of the texts above the bars."""
        placed = zip(self.tops, self.lines, strict=True)
        return [{"kind": "said", "top": top, "lines": list(lines)} for top, lines in placed]

    def say(self) -> list[Spec]:
        """A layer that shows these texts; none where names stand at the left."""
        look: Spec = {"align": "left", "baseline": "top", "lineHeight": _LINE_ABOVE, "fontSize": 12, "color": INK}
        said: dict[str, Spec] = {"x": {"value": 0}, "y": self.y("top"), "text": {"field": "lines"}}
        return [vega.mark("text", look, where="datum.kind === 'said'", **said)] if self.tops else []


def names_beside(names: Sequence[str], *, aside: float) -> BarRows:
    """Names at the left; `aside` is the room in pixels that is kept at the right of the bars.

    Names of several lines begin beside their bar, and push the next row down.
    """
    middles: list[float] = []
    top = 0.0
    for name in names:
        middles.append(top + _STEP / 2)
        top += max(_STEP, _LINE * (break_label(name).count("\n") + 1.5))
    width = vega.WIDTH - _LABELS - aside
    return BarRows(middles=tuple(middles), names=tuple(names), height=top, width=width)


def names_above(names: Sequence[str], words: Sequence[str]) -> BarRows:
    """Names with their words above the bars, in one line where both have room."""
    middles: list[float] = []
    tops: list[float] = []
    texts: list[tuple[str, ...]] = []
    top = 2.0
    for name, said in zip(names, words, strict=True):
        lines = lines_above(name, said)
        middle = top + _LINE_ABOVE * len(lines) + 1 + _HALF
        middles.append(middle)
        tops.append(top)
        texts.append(lines)
        top = middle + _HALF + _APART
    return BarRows(
        middles=tuple(middles),
        names=tuple(names),
        height=top,
        width=vega.NARROW + 54,
        tops=tuple(tops),
        lines=tuple(texts),
    )
