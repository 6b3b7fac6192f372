"""Charts of where a transaction's time goes: a difference as a waterfall of its parts, levels as stacked bars.

The parts are few enough, named, coloured, and in one unit.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from pgstrata.model.attribution import Attribution, Contribution, Part
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures import vega
from pgstrata.report.figures.run_lines import break_label
from pgstrata.report.figures.vega import INK, OPEN, Row, Spec
from pgstrata.report.sentences.causes import PART_NAMES, choose_decimals, choose_unit, half_of
from pgstrata.units import render_duration

MOST_PARTS: Final = 9
PALE: Final = 0.35
_LONGEST: Final = 36
# An interval that wide leaves no meaning to a tenth.
_WIDE: Final = 20.0
# Okabe and Ito, as everywhere; waits by their class, so that an event has its colour in every chart.
_COLOURS: Final = {
    Part.CLIENT: "#56b4e9",
    Part.CPU: "#009e73",
    Part.RUNNING: "#009e73",
    Part.QUEUE: "#e69f00",
    Part.REST: OPEN,
    Part.CONNECT: "#999933",
}
_WAITS: Final = {"IO": "#0072b2", "LWLock": "#d55e00", "Lock": "#cc79a7", "IPC": "#a6761d", "Timeout": "#f0e442"}
_OTHER_WAIT: Final = "#8c6bb1"
# Of one class several events: shades of its colour.
_SHADES: Final = (1.0, 0.72, 0.5, 0.34)
_ORDER: Final = (Part.CPU, Part.RUNNING, Part.QUEUE, Part.WAIT, Part.CONNECT, Part.CLIENT, Part.REST)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePart:
    """One part of a level's time per transaction, in seconds."""

    part: Part
    event: str
    seconds: float

    @property
    def name(self) -> str:
        """As in the legend."""
        return _name(self.part, self.event)


def name_part(contribution: Contribution) -> str:
    """Client and network; IO/WalSync. Names of events come from the server: cut, without control characters."""
    return _name(contribution.part, contribution.event)


def _name(part: Part | None, event: str) -> str:
    if part is None:
        return "all"
    return cut_name(event) or PART_NAMES[part]


def cut_name(text: str, longest: int = _LONGEST) -> str:
    """At most so many characters, none of which does anything but be read."""
    clean = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return clean if len(clean) <= longest else f"{clean[: longest - 1]}…"


def colour_of(part: Part | None, event: str) -> str:
    """By what the time was spent on."""
    if part is None:
        return OPEN
    return _COLOURS.get(part) or _WAITS.get(event.partition("/")[0], _OTHER_WAIT)


def say_difference(contribution: Contribution) -> str:
    """+9.1 µs [+8.0, +10.2]; unresolved ones say so."""
    size, unit = choose_unit(contribution.difference)
    half = half_of(contribution.interval) / size
    digits = max(choose_decimals(half), 1 if half < _WIDE else 0)
    ends = [contribution.difference / size]
    if contribution.interval is not None:
        ends += [contribution.interval.low / size, contribution.interval.high / size]
    value, *interval = (f"{end:+.{digits}f}" if end else "0" for end in ends)
    text = f"{value} {unit} [{', '.join(interval)}]" if interval else f"{value} {unit}"
    return text if contribution.resolved else f"{text} unresolved"


def fold_parts(attribution: Attribution, most: int = MOST_PARTS) -> tuple[Contribution, ...]:
    """The parts from the largest difference to the smallest, the unexplained rest last.

    Of many the smallest waits become one, without an interval of its own; they still add up to the total.
    """
    parts = [part for part in attribution.parts if part.part is not Part.REST]
    rest = [part for part in attribution.parts if part.part is Part.REST]
    ranked = sorted(parts, key=lambda part: abs(part.difference), reverse=True)
    waits = [part for part in ranked if part.part is Part.WAIT]
    surplus = len(parts) - most
    folded = waits[-(surplus + 1) :] if surplus > 0 else []
    if len(folded) > 1:
        kept = [part for part in ranked if part not in folded]
        return (*kept, _sum(folded), *rest)
    return (*ranked, *rest)


def _sum(parts: Sequence[Contribution]) -> Contribution:
    return Contribution(
        part=Part.WAIT,
        event="",
        query="",
        value=sum(part.value for part in parts),
        reference=sum(part.reference for part in parts),
        difference=sum(part.difference for part in parts),
        samples=sum(part.samples for part in parts),
        interval=None,
        resolved=False,
    )


def stack_levels(
    levels: Sequence[Mapping[tuple[Part, str], float]], most: int = MOST_PARTS
) -> list[tuple[TimePart, ...]]:
    """The parts of several levels, the same ones in the same order in each; small waits become one."""
    sizes: dict[tuple[Part, str], float] = {}
    for level in levels:
        for key, seconds in level.items():
            sizes[key] = max(sizes.get(key, 0.0), abs(seconds))
    waits = sorted((key for key in sizes if key[0] is Part.WAIT and key[1]), key=lambda key: -sizes[key])
    kept = set(waits[: max(1, most - len(sizes) + len(waits))])
    found = []
    for level in levels:
        folded: dict[tuple[Part, str], float] = {}
        for (part, event), seconds in level.items():
            key = (part, event if (part, event) in kept else "") if part is Part.WAIT else (part, "")
            folded[key] = folded.get(key, 0.0) + seconds
        found.append(folded)
    keys = sorted(
        {key for level in found for key in level},
        key=lambda key: (_ORDER.index(key[0]), key[1] == "", -sizes.get(key, 0.0), key[1]),
    )
    return [
        tuple(TimePart(part=part, event=event, seconds=level.get((part, event), 0.0)) for part, event in keys)
        for level in found
    ]


def legend_of(times: Iterable[TimePart]) -> dict[str, str]:
    """Colour by name, in the order of the parts; several events of one class are shades of its colour."""
    found: dict[str, str] = {}
    used: dict[str, int] = {}
    for each in times:
        if each.name not in found:
            colour = colour_of(each.part, each.event)
            found[each.name] = _shade(colour, _SHADES[used.get(colour, 0) % len(_SHADES)])
            used[colour] = used.get(colour, 0) + 1
    return found


def _shade(colour: str, strength: float) -> str:
    """Towards a light grey, which stands out from white and from black."""
    channels = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(200 + (channel - 200) * strength):02x}" for channel in channels)


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
    times: tuple[TimePart, ...]


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
        row |= {"colour": colour_of(part.part, part.event), "opacity": 0.9 if part.resolved else PALE}
        if part.interval is not None:
            row |= {"low": (start + part.interval.low) / size, "high": (start + part.interval.high) / size}
        rows.append(row)
    rows.append(_end(len(parts) + 1, names[1], total.value, size))
    air = _air(names[0])
    for row in rows:
        row["y"] += air * (row["y"] > 0)
        row |= {"above": row["y"] - _BAR, "below": row["y"] + _BAR}
    for row, after in pairwise(rows):
        row["next"] = after["above"]
    return rows


def _air(name: str) -> float:
    """Rows between the first one and the next, so that a name of several lines, which begin beside it, has room."""
    return max(0.0, _LINE * (len(break_label(name).split("\n")) + 0.5) / _STEP - 1)


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
    is_part, not_last, is_end = "datum.kind === 'part'", "isValid(datum.next)", "datum.kind === 'end'"
    layers = [
        vega.mark("bar", {"cornerRadius": 1.5}, where=is_part, x=x("from"), x2={"field": "to"}, **bar, **colours),
        vega.mark("rule", step, where=not_last, x=x("to"), y=_y(rows, "below"), y2={"field": "next"}),
        *_whiskers(x, _y(rows, "y")),
        vega.mark("rule", {"color": INK, "strokeWidth": 3}, where=is_end, x=x("to"), **bar),
        vega.mark("text", words, x={"value": width + 12}, y=_y(rows, "y"), text={"field": "words"}),
    ]
    return vega.layered(layers, width=width, height=(rows[-1]["y"] + 1) * _STEP)


def _whiskers(x: Callable[[str], Spec], y: Spec) -> list[Spec]:
    """Around the end of each bar that has an interval: a line with its two ends."""
    known, tick = "isValid(datum.low)", {"orient": "vertical", "color": INK, "size": 7, "thickness": 1.3}
    line = vega.mark("rule", {"color": INK, "strokeWidth": 1.3}, where=known, x=x("low"), x2={"field": "high"}, y=y)
    return [line, *(vega.mark("tick", tick, where=known, x=x(field), y=y) for field in ("low", "high"))]


def _y(rows: Sequence[Row], field: str) -> Spec:
    """Rows from above, with their names in lines; as JSON they end no string of the expression."""
    names = json.dumps({f"{row['y']:g}": break_label(row["name"]) for row in rows})
    axis = {
        "title": None,
        "values": [float(f"{row['y']:g}") for row in rows],
        "labelExpr": f"split({names}[datum.value], '\\n')",
        "grid": False,
        "ticks": False,
        "domain": False,
        "labelLimit": _LABELS,
        "labelPadding": 8,
        "labelLineHeight": _LINE,
        # each row keeps its name
        "labelOverlap": False,
    }
    scale = {"domain": [rows[-1]["y"] + 0.5, -0.5], "nice": False, "zero": False}
    return vega.number(field, scale=scale, axis=axis)


def draw_stacks(stacks: Sequence[Stack], title: str) -> Figure:
    """The time per transaction of each level, one bar each, in its parts; what is below zero lies left of it."""
    size, unit = choose_unit(max(sum(each.seconds for each in stack.times) for stack in stacks))
    rows = []
    for place, stack in enumerate(stacks):
        total = sum(each.seconds for each in stack.times)
        bar = {"kind": "part", "y": place, "above": place - _BAR, "below": place + _BAR}
        up = down = 0.0
        for each in stack.times:
            start = up if each.seconds >= 0 else down
            end = start + each.seconds
            up, down = (end, down) if each.seconds >= 0 else (up, end)
            rows.append({**bar, "part": each.name, "from": start / size, "to": end / size})
        rows.append({"kind": "total", "y": place, "to": up / size, "words": render_duration(total)})
    legend = legend_of([each for stack in stacks for each in stack.times])
    chart = _stacked(stacks, rows, legend, f"time per transaction, {unit}")
    label = "; ".join(_say_stack(stack) for stack in stacks)
    return vega.figure(title, f"Time per transaction by what it was spent on. {label}", chart, rows)


def _say_stack(stack: Stack) -> str:
    parts = ", ".join(f"{each.name} {render_duration(each.seconds)}" for each in stack.times)
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
        vega.mark("bar", {"stroke": INK, "strokeWidth": 0.3}, where="datum.kind === 'part'", **bar, color=colour),
        vega.mark("text", words, where="datum.kind === 'total'", x=end, y=_y(named, "y"), text={"field": "words"}),
    ]
    lines = max(len(break_label(stack.name).split("\n")) for stack in stacks)
    return vega.layered(
        layers, width=vega.WIDTH - _LABELS - 90, height=len(stacks) * max(_STEP + 3, _LINE * (lines + 1))
    )
