"""Charts of where a transaction's time goes: a difference as a waterfall of its parts, levels as stacked bars.

The parts are few enough, named, coloured, and in one unit.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from pgstrata.model.attribution import Attribution, Contribution, Part
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures import vega
from pgstrata.report.figures.bars import BarRows, names_above, names_beside
from pgstrata.report.figures.labels import LETTER
from pgstrata.report.figures.vega import INK, OPEN, Row, Spec
from pgstrata.report.sentences.causes import PART_NAMES, choose_decimals, choose_unit, half_of, render_signed
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
    value, *interval = (render_signed(end, digits) if end else "0" for end in ends)
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


_WORDS: Final = 210
"""Pixels for the figures at the right of the bars."""
_TOTALS: Final = 90
"""Pixels for the total at the right of a stack."""
# Room left and right of what is drawn, as a share of it.
_MARGIN: Final = 0.07


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One level of a factor: its name and what its transactions spend their time on, in seconds by part."""

    name: str
    times: tuple[TimePart, ...]


def _x(field: str, title: str, scale: Spec, places: BarRows) -> Spec:
    """The channel of an amount of time."""
    axis = {"format": "~r", "tickCount": places.ticks, "labelExpr": vega.MINUS}
    return vega.number(field, title=title, scale=scale, axis=axis)


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
    steps = _steps(attribution, parts, names, size)
    said = [row["name"] for row in steps], [row["words"] for row in steps]
    charts = []
    for places in (names_beside(said[0], aside=_WORDS), names_above(*said)):
        rows = [*_place_steps(steps, places), *places.texts()]
        charts.append((_waterfall(rows, f"time per transaction, {unit}", places), rows))
    told = "; ".join(f"{name_part(part)}: {say_difference(part)}" for part in parts)
    label = (
        f"Time per transaction of {names[0]}, {render_duration(total.reference)}, its parts up and down, and that of "
        f"{names[1]}, {render_duration(total.value)}. {told}"
    )
    return vega.figure(title, label, *charts[0], *charts[1])


def _steps(
    attribution: Attribution, parts: Sequence[Contribution], names: tuple[str, str], size: float
) -> list[dict[str, Any]]:
    """The reference, the parts and the environment, in units of `size` seconds."""
    total = attribution.total
    rows = [_end(names[0], total.reference, size)]
    level = total.reference
    for part in parts:
        start, level = level, level + part.difference
        row: dict[str, Any] = {"kind": "part", "name": name_part(part), "words": say_difference(part)}
        row |= {"from": start / size, "to": level / size}
        row |= {"colour": colour_of(part.part, part.event), "opacity": 0.9 if part.resolved else PALE}
        if part.interval is not None:
            row |= {"low": (start + part.interval.low) / size, "high": (start + part.interval.high) / size}
        rows.append(row)
    return [*rows, _end(names[1], total.value, size)]


def _end(name: str, seconds: float, size: float) -> dict[str, Any]:
    at = seconds / size
    return {"kind": "end", "name": name, "from": at, "to": at, "words": render_duration(seconds)}


def _place_steps(steps: Sequence[Row], places: BarRows) -> list[dict[str, Any]]:
    """With their pixels; `next` is where the bar of the next row begins."""
    rows = [{**row, **places.fields(place)} for place, row in enumerate(steps)]
    for row, after in pairwise(rows):
        row["next"] = after["above"]
    return rows


def _waterfall(rows: Sequence[Row], title: str, places: BarRows) -> Spec:
    ends = [row[field] for row in rows for field in ("from", "to", "low", "high") if field in row]
    margin = _MARGIN * (max(ends) - min(ends)) or abs(ends[0]) * _MARGIN or 1.0
    scale = {"domain": [min(ends) - margin, max(ends) + margin], "nice": False, "zero": False}

    def x(field: str) -> Spec:
        return _x(field, title, scale, places)

    y, bar = places.y("y"), {"y": places.y("above"), "y2": {"field": "below"}}
    colours = {"color": vega.name("colour", scale=None), "opacity": vega.number("opacity", scale=None)}
    step = {"color": INK, "strokeWidth": 1, "opacity": 0.45}
    is_part, not_last, is_end = "datum.kind === 'part'", "isValid(datum.next)", "datum.kind === 'end'"
    layers = [
        vega.mark("bar", {"cornerRadius": 1.5}, where=is_part, x=x("from"), x2={"field": "to"}, **bar, **colours),
        vega.mark("rule", step, where=not_last, x=x("to"), y=places.y("below"), y2={"field": "next"}),
        *_whiskers(x, y),
        vega.mark("rule", {"color": INK, "strokeWidth": 3}, where=is_end, x=x("to"), **bar),
        *(places.say() or [_figures_at_the_right(places.width, y)]),
    ]
    return vega.layered(layers, width=places.width, height=places.height)


def _figures_at_the_right(width: float, y: Spec) -> Spec:
    look = {"align": "left", "color": INK, "baseline": "middle"}
    return vega.mark("text", look, x={"value": width + 12}, y=y, text={"field": "words"})


def _whiskers(x: Callable[[str], Spec], y: Spec) -> list[Spec]:
    """Around the end of each bar that has an interval: a line with its two ends."""
    known, tick = "isValid(datum.low)", {"orient": "vertical", "color": INK, "size": 7, "thickness": 1.3}
    line = vega.mark("rule", {"color": INK, "strokeWidth": 1.3}, where=known, x=x("low"), x2={"field": "high"}, y=y)
    return [line, *(vega.mark("tick", tick, where=known, x=x(field), y=y) for field in ("low", "high"))]


def draw_stacks(stacks: Sequence[Stack], title: str) -> Figure:
    """The time per transaction of each level, one bar each, in its parts; what is below zero lies left of it."""
    totals = [sum(each.seconds for each in stack.times) for stack in stacks]
    size, unit = choose_unit(max(totals))
    legend = legend_of([each for stack in stacks for each in stack.times])
    names = [stack.name for stack in stacks]
    charts = []
    for places in (names_beside(names, aside=_TOTALS), names_above(names, [*map(render_duration, totals)])):
        rows = [*_bars(stacks, size, places), *places.texts()]
        charts.append((_stacked(rows, legend, f"time per transaction, {unit}", places), rows))
    label = "; ".join(_say_stack(stack) for stack in stacks)
    return vega.figure(title, f"Time per transaction by what it was spent on. {label}", *charts[0], *charts[1])


def _bars(stacks: Sequence[Stack], size: float, places: BarRows) -> Iterator[dict[str, Any]]:
    """The parts of each bar, and its total at its end."""
    for place, stack in enumerate(stacks):
        at = places.fields(place)
        up = down = 0.0
        for each in stack.times:
            start = up if each.seconds >= 0 else down
            end = start + each.seconds
            up, down = (end, down) if each.seconds >= 0 else (up, end)
            yield {"kind": "part", **at, "part": each.name, "from": start / size, "to": end / size}
        total = sum(each.seconds for each in stack.times)
        yield {"kind": "total", **at, "to": up / size, "words": render_duration(total)}


def _say_stack(stack: Stack) -> str:
    parts = ", ".join(f"{each.name} {render_duration(each.seconds)}" for each in stack.times)
    return f"{stack.name}: {parts}"


def _stacked(rows: Sequence[Row], legend: Mapping[str, str], title: str, places: BarRows) -> Spec:
    ends = [row[name] for row in rows for name in ("from", "to") if name in row]
    scale = {"domain": [min(0.0, *ends), max(ends)], "nice": True}
    start, end = (_x(field, title, scale, places) for field in ("from", "to"))
    # as many columns as the longest name leaves room for
    room = places.width if places.tops else vega.WIDTH
    columns = max(1, min(4, int(room / (30 + LETTER * max(map(len, legend), default=1)))))
    below = {"orient": "bottom", "title": None, "columns": columns, "columnPadding": 18, "labelLimit": 280}
    parts = {"domain": list(legend), "range": list(legend.values())}
    bar: Spec = {"x": start, "x2": {"field": "to"}, "y": places.y("above"), "y2": {"field": "below"}}
    colour = vega.name("part", sort=None, scale=parts, legend=below)
    words = {"align": "left", "dx": 6, "color": INK, "baseline": "middle"}
    total = vega.mark("text", words, where="datum.kind === 'total'", x=end, y=places.y("y"), text={"field": "words"})
    layers = [
        vega.mark("bar", {"stroke": INK, "strokeWidth": 0.3}, where="datum.kind === 'part'", **bar, color=colour),
        *(places.say() or [total]),
    ]
    return vega.layered(layers, width=places.width, height=places.height)
