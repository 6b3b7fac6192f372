"""A chart of price and throughput, with the frontier of environments that no other one beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgstrata.model.price import Cost
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures import vega
from pgstrata.report.figures.run_lines import break_label
from pgstrata.report.figures.vega import INK, Spec
from pgstrata.report.sentences.worth import say_cost

PRICES_HELP: Final = "Up is faster, left is cheaper."
FRONTIER_HELP: Final = (
    f"{PRICES_HELP} The line joins environments that no other one certainly beats. To beat another is to cost no more "
    "and be faster, or to cost less and be as fast. Each pair is judged by itself, exploratory."
)
_WIDTH: Final = 470
_HEIGHT: Final = 260
_LETTERS, _LETTERS_NARROW = 30, 20
"""Most letters of a line of a name, which fits into half of the chart."""
_FEWEST: Final = 2
_ROOM: Final = 1.05
"""The end of the axis, as a multiple of the highest price."""
_OFFSET: Final = 9
"""Pixels between a point and its name."""
_LINE: Final = 13


def draw_frontier(names: Sequence[str], costs: Sequence[Cost], *, judged: bool = True) -> Figure | None:
    """A chart of each environment's price and throughput with its interval; None with fewer than two prices.

    Args:
        names: of the environments of the costs, in the same order.
        costs: in one place.
        judged: whether it is known which environments are beaten; otherwise there is no frontier, only points.
    """
    if len({cost.price.amount for cost in costs}) < _FEWEST:
        return None
    wide, narrow = _rows(names, costs, _LETTERS), _rows(names, costs, _LETTERS_NARROW)
    charts = [_chart(rows, costs, width, judged=judged) for rows, width in ((wide, _WIDTH), (narrow, vega.NARROW))]
    currency = costs[0].price.currency
    said = (
        f"{name}: a million transactions for {say_cost(cost)} {currency}"
        for name, cost in zip(names, costs, strict=True)
    )
    return vega.figure("", f"Throughput against price. {'; '.join(said)}", charts[0], wide, charts[1], narrow)


def _rows(names: Sequence[str], costs: Sequence[Cost], letters: int) -> list[vega.Row]:
    """A row for each environment, with its name in lines of so many letters."""
    return [
        {
            "name": break_label(name, letters),
            "lines": break_label(name, letters).count("\n") + 1,
            "price": cost.price.amount,
            "rate": vega.rounded(cost.rate),
            "low": vega.rounded(cost.interval[0]) if cost.interval else None,
            "high": vega.rounded(cost.interval[1]) if cost.interval else None,
            "front": not cost.dominated_by,
        }
        for name, cost in zip(names, costs, strict=True)
    ]


def _chart(rows: Sequence[vega.Row], costs: Sequence[Cost], width: int, *, judged: bool) -> Spec:
    right = _ROOM * max(cost.price.amount for cost in costs)
    title = f"{costs[0].price.currency} per hour"
    x = vega.number("price", title=title, scale={"domain": [0, right], "nice": False}, axis={"tickCount": width // 70})
    y = vega.number("rate", title="transactions per second", scale={"zero": True})
    low = vega.number("low", title="transactions per second")
    line = vega.mark("line", {"color": INK, "strokeDash": [4, 3], "opacity": 0.6}, where="datum.front", x=x, y=y)
    layers = [
        *([line] if judged else []),
        vega.mark("rule", {"color": INK, "strokeWidth": 2}, x=x, y=low, y2={"field": "high"}),
        vega.mark("point", {"filled": True, "size": 70, "opacity": 1, "color": INK}, where="datum.front", x=x, y=y),
        vega.mark("point", {"size": 70, "opacity": 1, "color": INK}, where="!datum.front", x=x, y=y),
    ]
    # at the side with more room, which is at least half of the chart
    for lines in sorted({row["lines"] for row in rows}):
        above = {"dy": -7 - _LINE * (lines - 1), "color": INK, "lineBreak": "\n", "lineHeight": _LINE}
        for align, side, half in (("left", 1, "<="), ("right", -1, ">")):
            where = f"datum.price {half} {right / 2} && datum.lines === {lines}"
            beside = {**above, "align": align, "dx": side * _OFFSET}
            layers.append(vega.mark("text", beside, where=where, text=vega.name("name"), x=x, y=y))
    return vega.layered(layers, width=width, height=_HEIGHT)
