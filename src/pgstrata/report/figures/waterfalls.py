"""Charts of where a transaction's time goes: a difference as a waterfall of its parts, levels as stacked bars."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pgstrata.model.attribution import Attribution, Contribution
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures import vega
from pgstrata.report.figures.run_points import break_label
from pgstrata.report.figures.time_parts import (
    PALE,
    Slab,
    colour_of,
    fold_parts,
    legend_of,
    name_part,
    say_difference,
)
from pgstrata.report.figures.vega import INK, Row, Spec
from pgstrata.report.sentences.contributions import choose_unit
from pgstrata.units import render_duration

_LABELS: Final = 230
_WORDS: Final = 210
_STEP: Final = 27
_BAR: Final = 0.32
_LINE: Final = 12
# Room left and right of what is drawn, as a share of it.
_MARGIN: Final = 0.07
# How amounts of time stand along x.
_TIMES: Final = {"format": "~r", "tickCount": 6, "labelExpr": vega.MINUS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One level of a factor: its name and what its transactions spend their time on, in seconds by part."""

    name: str
    slabs: tuple[Slab, ...]


# ------------------------------------------------------------------------------------------------ waterfall


def draw_waterfall(attribution: Attribution, names: tuple[str, str], title: str) -> Figure:
    """From the reference's time per transaction by the parts, up and down, to the environment's.

    Args:
        attribution: what is drawn.
        names: of the reference and of the environment.
        title: of the chart.
    """
    parts = fold_parts(attribution)
    total = attribution.total
    size, unit = choose_unit(max(total.value, total.reference))
    rows = _rows(attribution, parts, names, size)
    chart = _waterfall(rows, f"time per transaction, {unit}")
    said = "; ".join(f"{name_part(part)}: {say_difference(part)}" for part in parts)
    label = (
        f"Time per transaction of {names[0]}, {render_duration(total.reference)}, its parts up and down, and that of "
        f"{names[1]}, {render_duration(total.value)}. {said}"
    )
    return vega.figure(title, label, chart, rows)


def _rows(
    attribution: Attribution, parts: Sequence[Contribution], names: tuple[str, str], size: float
) -> list[dict[str, Any]]:
    total = attribution.total
    rows = [_end(0, names[0], total.reference, size)]
    level = total.reference
    for place, part in enumerate(parts, 1):
        start, level = level, level + part.difference
        row: dict[str, Any] = {"kind": "part", "y": place, "name": name_part(part), "words": say_difference(part)}
        row |= {"from": start / size, "to": level / size}
        row |= {"colour": colour_of(part), "opacity": 0.9 if part.resolved else PALE}
        if part.interval is not None:
            row |= {"low": (start + part.interval.low) / size, "high": (start + part.interval.high) / size}
        rows.append(row)
    rows.append(_end(len(parts) + 1, names[1], total.value, size))
    for row in rows:
        row |= {"above": row["y"] - _BAR, "below": row["y"] + _BAR, "next": row["y"] + 1 - _BAR}
    return rows


def _end(place: int, name: str, seconds: float, size: float) -> dict[str, Any]:
    at = seconds / size
    return {"kind": "end", "y": place, "name": name, "from": at, "to": at, "words": render_duration(seconds)}


def _waterfall(rows: Sequence[Row], title: str) -> Spec:
    ends = [row[field] for row in rows for field in ("from", "to", "low", "high") if field in row]
    margin = _MARGIN * (max(ends) - min(ends)) or abs(ends[0]) * _MARGIN or 1.0
    scale = {"domain": [min(ends) - margin, max(ends) + margin], "nice": False, "zero": False}
    width = vega.WIDTH - _LABELS - _WORDS

    def x(field: str) -> Spec:
        return vega.number(field, title=title, scale=scale, axis=_TIMES)

    bar: Spec = {"y": _y(rows, "above"), "y2": {"field": "below"}}
    colours = {"color": vega.name("colour", scale=None), "opacity": vega.number("opacity", scale=None)}
    step = {"color": INK, "strokeWidth": 1, "opacity": 0.45}
    words = {"align": "left", "color": INK, "baseline": "middle"}
    is_part, not_last, is_end = "datum.kind === 'part'", f"datum.y < {len(rows) - 1}", "datum.kind === 'end'"
    layers = [
        vega.mark("bar", {"cornerRadius": 1.5}, where=is_part, x=x("from"), x2={"field": "to"}, **bar, **colours),
        vega.mark("rule", step, where=not_last, x=x("to"), y=_y(rows, "below"), y2={"field": "next"}),
        *_whiskers(x, _y(rows, "y")),
        vega.mark("rule", {"color": INK, "strokeWidth": 3}, where=is_end, x=x("to"), **bar),
        vega.mark("text", words, x={"value": width + 12}, y=_y(rows, "y"), text={"field": "words"}),
    ]
    return vega.layered(layers, width=width, height=len(rows) * _STEP)


def _whiskers(x: Callable[[str], Spec], y: Spec) -> list[Spec]:
    """Around the end of each bar that has an interval: a line with its two ends."""
    known, tick = "isValid(datum.low)", {"orient": "vertical", "color": INK, "size": 7, "thickness": 1.3}
    line = vega.mark("rule", {"color": INK, "strokeWidth": 1.3}, where=known, x=x("low"), x2={"field": "high"}, y=y)
    return [line, *(vega.mark("tick", tick, where=known, x=x(field), y=y) for field in ("low", "high"))]


def _y(rows: Sequence[Row], field: str) -> Spec:
    """Rows from above, with their names in lines; as JSON they end no string of the expression."""
    names = json.dumps([break_label(row["name"]) for row in rows])
    axis = {
        "title": None,
        "values": [row["y"] for row in rows],
        "labelExpr": f"split({names}[datum.value], '\\n')",
        "grid": False,
        "ticks": False,
        "domain": False,
        "labelLimit": _LABELS,
        "labelPadding": 8,
        "labelLineHeight": _LINE,
    }
    return vega.number(field, scale={"domain": [len(rows) - 0.5, -0.5], "nice": False, "zero": False}, axis=axis)


# ------------------------------------------------------------------------------------------------ levels


def draw_stacks(stacks: Sequence[Stack], title: str) -> Figure:
    """The time per transaction of each level, one bar each, in its parts; what is below zero lies left of it."""
    size, unit = choose_unit(max(sum(slab.seconds for slab in stack.slabs) for stack in stacks))
    rows = []
    for place, stack in enumerate(stacks):
        total = sum(slab.seconds for slab in stack.slabs)
        bar = {"kind": "slab", "y": place, "above": place - _BAR, "below": place + _BAR}
        up = down = 0.0
        for slab in stack.slabs:
            start = up if slab.seconds >= 0 else down
            end = start + slab.seconds
            up, down = (end, down) if slab.seconds >= 0 else (up, end)
            rows.append({**bar, "part": slab.name, "from": start / size, "to": end / size})
        rows.append({"kind": "total", "y": place, "to": up / size, "words": render_duration(total)})
    legend = legend_of([slab for stack in stacks for slab in stack.slabs])
    chart = _stacked(stacks, rows, legend, f"time per transaction, {unit}")
    label = "; ".join(_say_stack(stack) for stack in stacks)
    return vega.figure(title, f"Time per transaction by what it was spent on. {label}", chart, rows)


def _say_stack(stack: Stack) -> str:
    parts = ", ".join(f"{slab.name} {render_duration(slab.seconds)}" for slab in stack.slabs)
    return f"{stack.name}: {parts}"


def _stacked(stacks: Sequence[Stack], rows: Sequence[Row], legend: Mapping[str, str], title: str) -> Spec:
    ends = [row[name] for row in rows for name in ("from", "to") if name in row]
    named = [{"y": place, "name": stack.name} for place, stack in enumerate(stacks)]
    scale = {"domain": [min(0.0, *ends), max(ends)], "nice": True}
    start, end = (vega.number(field, title=title, scale=scale, axis=_TIMES) for field in ("from", "to"))
    below = {"orient": "bottom", "title": None, "columns": 4, "columnPadding": 18, "labelLimit": 190}
    parts = {"domain": list(legend), "range": list(legend.values())}
    bar: Spec = {"x": start, "x2": {"field": "to"}, "y": _y(named, "above"), "y2": {"field": "below"}}
    colour = vega.name("part", sort=None, scale=parts, legend=below)
    words = {"align": "left", "dx": 6, "color": INK, "baseline": "middle"}
    layers = [
        vega.mark("bar", {"stroke": INK, "strokeWidth": 0.3}, where="datum.kind === 'slab'", **bar, color=colour),
        vega.mark("text", words, where="datum.kind === 'total'", x=end, y=_y(named, "y"), text={"field": "words"}),
    ]
    return vega.layered(layers, width=vega.WIDTH - _LABELS - 90, height=len(stacks) * (_STEP + 3))
