"""A chart of price and throughput, with the frontier of environments that no other one beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgstrata.model.answer import Answer
from pgstrata.model.price import Cost
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures import vega
from pgstrata.report.figures.vega import INK
from pgstrata.report.sentences.names import name_environment
from pgstrata.report.sentences.worth import say_cost

_WIDTH: Final = 470
_HEIGHT: Final = 260
_FEWEST: Final = 2
_ROOM: Final = 1.3
"""Room at the right for the names of points, as a multiple of the highest price."""


def draw_frontier(answer: Answer, costs: Sequence[Cost]) -> Figure | None:
    """A chart of each environment's price and throughput with its interval; None with fewer than two prices."""
    if len({cost.price.amount for cost in costs}) < _FEWEST:
        return None
    experiment = answer.study.plan.experiment
    rows = [
        {
            "name": name_environment(experiment.environment(cost.environment), experiment),
            "price": cost.price.amount,
            "rate": vega.rounded(cost.rate),
            "low": vega.rounded(cost.interval[0]) if cost.interval else None,
            "high": vega.rounded(cost.interval[1]) if cost.interval else None,
            "front": not cost.dominated_by,
        }
        for cost in costs
    ]
    currency = costs[0].price.currency
    right = _ROOM * max(cost.price.amount for cost in costs)
    x = vega.number("price", title=f"{currency} per hour", scale={"domain": [0, right], "nice": False})
    y = vega.number("rate", title="transactions per second", scale={"zero": True})
    low = vega.number("low", title="transactions per second")
    layers = [
        vega.mark("line", {"color": INK, "strokeDash": [4, 3], "opacity": 0.6}, where="datum.front", x=x, y=y),
        vega.mark("rule", {"color": INK, "strokeWidth": 2}, x=x, y=low, y2={"field": "high"}),
        vega.mark("point", {"filled": True, "size": 70, "opacity": 1, "color": INK}, where="datum.front", x=x, y=y),
        vega.mark("point", {"size": 70, "opacity": 1, "color": INK}, where="!datum.front", x=x, y=y),
        vega.mark("text", {"align": "left", "dx": 9, "dy": -7, "color": INK}, text=vega.name("name"), x=x, y=y),
    ]
    said = (
        f"{row['name']}: a million transactions for {say_cost(cost)} {currency}"
        for row, cost in zip(rows, costs, strict=True)
    )
    chart = vega.layered(layers, width=_WIDTH, height=_HEIGHT)
    return vega.figure("", f"Throughput against price. {'; '.join(said)}", chart, rows)
