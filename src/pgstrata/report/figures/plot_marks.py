"""What is drawn of the rows of a projection: grid, lines, intervals, names beside them, single runs, legend. As SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import Final

from pgstrata.model.answer import AxisStep
from pgstrata.report.figures.labels import LETTER, LINE, Box, cut, cut_apart, part_labels, text_box, thin_out
from pgstrata.report.figures.looks import Look, draw_marks
from pgstrata.report.figures.plot_rows import WIDTH, Point, Row, Sheet
from pgstrata.report.figures.run_lines import break_label
from pgstrata.report.figures.vega import INK, OPEN
from pgstrata.report.projections.design import shorten_alike
from pgstrata.report.projections.model import PAIR, SCALE, Curve
from pgstrata.report.sentences.names import name_factor
from pgstrata.units import render_percent_change

LETTERS: Final = 17
"""Letters of a name beside a line; hovering over the line shows the whole name."""
_LEFT: Final = 44
_MOST_BANDS: Final = 3
_MARK, _DENSE = 3.4, 0.45
_MOST_ASIDE: Final = 12.0
"""Pixels from the first to the last of lines that are moved aside."""
_SHARE_ASIDE: Final = 0.5
_SHORT: Final = 6.0
"""Whiskers that the mark at their middle covers are left out."""
_TURNED: Final = 11.0
_MOST_LETTERS_TURNED: Final = 14
_ACROSS_TURNED: Final = LETTER * 0.68
"""Pixels to the left that a letter of a turned text takes, of wide fonts too."""
_TALL_TURNED: Final = 5.0
"""Pixels to the left that the height of a turned text takes, less those by which it stands to the right."""
_LETTERS_OF_LEGEND: Final = 0.14
"""Letters of a line beside its mark, for each pixel of the drawing's width."""
_EXCLUDED: Final = "excluded run"
_FAR: Final = "run far from the median"
_KINK: Final = "point off its curve"
_STEP: Final = "resolved step"
_OTHERS: Final = "other lines"


def text(x: float, y: float, said: str, *, anchor: str = "start", more: str = "", whole: str = "") -> str:
    """A line of text with its baseline at `y`; `whole` is what it was cut from, for those who rest a mouse on it."""
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    drawn = f'<text x="{x:.1f}" y="{y:.1f}"{side}{more}>{escape(said)}</text>'
    return f"<g><title>{escape(whole)}</title>{drawn}</g>" if whole and whole != said else drawn


def draw_row(sheet: Sheet, row: Row) -> Iterator[str]:
    """Grid and axis, then lines, the named ones on top, single runs, and names at the ends."""
    yield text(0, row.y.end - 8, row.title, more=' font-weight="600"')
    yield from _draw_grid(sheet, row)
    curves = list(zip(sheet.projection.curves, sheet.looks, row.lines, strict=True))
    named = [each for each in curves if each[1].named and not (row.change and each[0].baseline)]
    yield from (_draw_soft(sheet, row, curve, points) for curve, look, points in curves if not look.named)
    for (curve, look, points), shift in zip(named, _shifts(sheet, row, len(named)), strict=True):
        yield from _draw_named(sheet, row, curve, look, points, shift)
    if row.primary:
        yield from _draw_strays(sheet, row)
    if row.change:
        yield from _draw_steps(sheet, row)
    yield from _draw_names(sheet, row, [(curve, look, points) for curve, look, points in named if any(points)])


def _draw_grid(sheet: Sheet, row: Row) -> Iterator[str]:
    """Lines at the numbers of the axis; of differences the band of the threshold; dashes where data outgrow memory."""
    ends = _LEFT, sheet.right
    if row.change:
        low, high = (row.y.at(1 + sign * sheet.bounds.threshold) for sign in (-1, 1))
        size = f'x="{ends[0]}" y="{high:.1f}" width="{ends[1] - ends[0]:.1f}" height="{low - high:.1f}"'
        yield f'<rect {size} fill="{OPEN}" opacity=".16"/>'
        yield f'<path d="M{ends[0]},{row.y.at(1):.1f}H{ends[1]:.1f}" stroke="{INK}" stroke-width="1.2"/>'
    lines = "".join(f"M{ends[0]},{row.y.at(tick.value):.1f}H{ends[1]:.1f}" for tick in row.ticks)
    yield f'<path d="{lines}" stroke="{INK}" opacity=".13"/>'
    for tick in row.ticks:
        yield text(ends[0] - 5, row.y.at(tick.value) + 4, tick.text, anchor="end")
    for x, said in outgrown_places(sheet):
        yield f'<path d="M{x:.1f},{row.y.end:.1f}V{row.y.start:.1f}" stroke="{INK}" stroke-dasharray="4 3"/>'
        if row.primary:
            larger = f"data > {said}"
            fits = x + text_box(larger, 0, 0).width <= ends[1]
            yield text(x + 4 if fits else x - 4, row.y.start - 4, larger, anchor="start" if fits else "end")


def outgrown_places(sheet: Sheet) -> tuple[tuple[float, str], ...]:
    """Pixels along scale from which on data are larger than shared_buffers or memory; none along other axes."""
    if sheet.projection.axis != SCALE:
        return ()
    found, before = [], set[str]()
    for x, place in zip(sheet.xs, sheet.projection.curves[0].places, strict=True):
        exceeded = set(sheet.bounds.exceeded.get(place.cell, ())) if place is not None else set()
        if new := sorted(exceeded - before):
            found.append((x, ", ".join(new)))
        before |= exceeded
    return tuple(found)


def _pixels(sheet: Sheet, row: Row, points: Sequence[Point | None], shift: float = 0) -> list[tuple[float, float]]:
    return [(x + shift, row.y.at(point.value)) for x, point in zip(sheet.xs, points, strict=True) if point]


def _line(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _draw_soft(sheet: Sheet, row: Row, curve: Curve, points: Sequence[Point | None]) -> str:
    places = _pixels(sheet, row, points)
    look = f'stroke="{OPEN}" stroke-width=".9" opacity=".5"'
    return f'<path d="{_line(places)}" {look}><title>{escape(curve.name)}</title></path>' if places else ""


def _shifts(sheet: Sheet, row: Row, number: int) -> Sequence[float | None]:
    """By how much lines are moved aside, so that their whiskers do not cover each other; None where bands do not."""
    if not row.change:
        return [0.0] * number
    if number <= _MOST_BANDS and len(sheet.xs) > PAIR:
        return [None] * number
    room = min((after - before for before, after in pairwise(sheet.xs)), default=0.0)
    apart = min(_MOST_ASIDE, _SHARE_ASIDE * room) / number
    return [apart * (place - (number - 1) / 2) for place in range(number)]


def _draw_named(
    sheet: Sheet, row: Row, curve: Curve, look: Look, points: Sequence[Point | None], shift: float | None
) -> Iterator[str]:
    """A line with its marks, and intervals as a band, or as whiskers where it is to be moved aside by `shift`."""
    places = _pixels(sheet, row, points, shift or 0)
    if not places:
        return
    yield f"<g><title>{escape(curve.name)}</title>"
    whiskers = ""
    ends = [
        (x + (shift or 0), row.y.at(point.low), row.y.at(point.high))
        for x, point in zip(sheet.xs, points, strict=True)
        if point and point.low is not None and point.high is not None
    ]
    if shift is None and len(ends) > 1:
        outline = [*((x, high) for x, _, high in ends), *((x, low) for x, low, _ in reversed(ends))]
        yield f'<path d="{_line(outline)}z" fill="{look.colour}" opacity=".2"/>'
    else:
        whiskers = "".join(f"M{x:.1f},{low:.1f}V{high:.1f}" for x, low, high in ends if low - high > _SHORT)
    dots = ' stroke-dasharray="1.5 4"' if sheet.projection.gapped else ""
    if dots and whiskers:
        yield f'<path d="{whiskers}" stroke="{look.colour}" stroke-width="1.5"/>'
        whiskers = ""
    yield f'<path d="{_line(places)}{whiskers}" stroke="{look.colour}" stroke-width="1.5"{dots}/>'
    size = min(_MARK, _DENSE * (sheet.xs[-1] - sheet.xs[0]) / max(1, len(sheet.xs) - 1))
    yield f'<path d="{draw_marks(look.mark, places, size)}" fill="{look.colour}"/></g>'


def _draw_strays(sheet: Sheet, row: Row) -> Iterator[str]:
    """Hollow circles of excluded runs, hollow diamonds of those far from the median, rings around kinks."""
    for curve, look, points in zip(sheet.projection.curves, sheet.looks, row.lines, strict=True):
        for x, place, point in zip(sheet.xs, curve.places, points, strict=True):
            if place is None:
                continue
            for excluded, mark in ((True, 0), (False, 3)):
                values = [one.value for one in sheet.figures.strays.get(place, ()) if one.excluded is excluded]
                at = [(x, row.y.at(value * row.times)) for value in values]
                if at:
                    faint = "" if look.named else ' opacity=".6"'
                    yield f'<path d="{draw_marks(mark, at, 2.6)}" stroke="{look.colour}" stroke-width="1.1"{faint}/>'
            if place in sheet.figures.kinks and point is not None:
                yield f'<circle cx="{x:.1f}" cy="{row.y.at(point.value):.1f}" r="7" stroke="{INK}"/>'


def steps_of(sheet: Sheet, curve: Curve) -> tuple[AxisStep, ...]:
    """Resolved steps of a curve along a factor; none where they belong to several curves together."""
    if sheet.projection.axis in sheet.bounds.crossed:
        return ()
    cells = {place.cell for place in curve.places if place is not None}
    return tuple(step for cell in cells for step in sheet.figures.steps.get((sheet.projection.axis, cell), ()))


def _draw_steps(sheet: Sheet, row: Row) -> Iterator[str]:
    """The part of a line at a resolved step is thick, with the size of the step beside it where there is room."""
    taken: list[Box] = []
    levels = sheet.projection.levels
    for curve, look, points in zip(sheet.projection.curves, sheet.looks, row.lines, strict=True):
        if not look.named:
            continue
        for step in steps_of(sheet, curve):
            ends = [levels.index(step.before), levels.index(step.after)]
            found = [(sheet.xs[place], point) for place in ends if (point := points[place]) is not None]
            if len(found) < len(ends):
                continue
            (x1, y1), (x2, y2) = ((x, row.y.at(point.value)) for x, point in found)
            path = f'd="M{x1:.1f},{y1:.1f}L{x2:.1f},{y2:.1f}" stroke="{look.colour}" stroke-width="5" opacity=".55"'
            said = render_percent_change(step.effect)
            yield f"<path {path}><title>{escape(f'{curve.name}, {step.after}: {said}')}</title></path>"
            middle = min(max(y2 - LINE, row.y.end + LINE / 2), row.y.start - LINE / 2)
            box = text_box(said, x2, middle, anchor="middle")
            if _is_free(box, taken, sheet):
                taken.append(box)
                yield text(x2, middle + 4, said, anchor="middle")


def _is_free(box: Box, taken: Sequence[Box], sheet: Sheet) -> bool:
    inside = box.left >= _LEFT and box.left + box.width <= sheet.right
    return inside and not any(box.overlaps(other) for other in taken)


def _draw_names(sheet: Sheet, row: Row, named: Sequence[tuple[Curve, Look, Sequence[Point | None]]]) -> Iterator[str]:
    """Mark and name of each curve at the right, joined with its last point."""
    heights = name_heights(row, [each[2] for each in named])
    names = cut_apart([curve.name for curve, _, _ in named], LETTERS)
    for (curve, look, points), name, at in zip(named, names, heights, strict=True):
        if at is None:
            continue
        x, y = _pixels(sheet, row, points)[-1]
        start = sheet.right + 2
        leader = f"M{x + 4:.1f},{y:.1f}L{start:.1f},{at:.1f}" if abs(y - at) > 1 else ""
        mark = draw_marks(look.mark, [(start + 5, at)], 3)
        yield f'<path d="{leader}{mark}" fill="{look.colour}" stroke="{look.colour}" stroke-width=".6"/>'
        yield text(start + 12, at + 4, name, whole=curve.name)


def name_heights(row: Row, lines: Sequence[Sequence[Point | None]]) -> tuple[float | None, ...]:
    """Middles of the names of curves, as near to their last points as there is room."""
    wanted = [row.y.at([point for point in points if point][-1].value) for points in lines]
    return part_labels(wanted, row.y.end, row.y.start)


def draw_levels(sheet: Sheet, bottom: float) -> tuple[list[str], float]:
    """Levels below the lowest row, turned where they are long, as many as there is room for; where they end."""
    levels = shorten_alike(sheet.projection.levels)
    texts = cut_apart(levels, _MOST_LETTERS_TURNED)
    shown = thin_out(texts, sheet.xs)
    turned = not all(shown) and not sheet.projection.numbers
    y, parts = bottom + 16, []
    if turned:
        room = sheet.xs[1] - sheet.xs[0] if len(sheet.xs) > 1 else _TURNED
        every = max(1, round(_TURNED / room + 0.49))
        shown = tuple(place % every == 0 for place in range(len(texts)))
    for x, said, level, here in zip(sheet.xs, texts, levels, shown, strict=True):
        if here and turned:
            fitting = cut(said, int((x - _TALL_TURNED) / _ACROSS_TURNED))
            turn = f' transform="rotate(-50 {x + 4:.1f} {y:.1f})"'
            parts.append(text(x + 4, y, fitting, anchor="end", more=turn, whole=level))
        elif here:
            parts.append(text(x, y, said, anchor="middle", whole=level))
    foot = y + (max(map(len, texts)) * LETTER * 0.72 if turned else 0) + 15
    parts.append(text((_LEFT + sheet.right) / 2, foot, name_factor(sheet.projection.axis), anchor="middle"))
    return parts, foot


def draw_legend(sheet: Sheet, foot: float) -> tuple[list[str], float]:
    """What hollow and thick marks mean, of those that occur; and where all ends."""
    return lay_legend(_legend_items(sheet), foot)


def lay_legend(items: Sequence[tuple[str, str]], foot: float, across: float = WIDTH) -> tuple[list[str], float]:
    """Marks and what they mean, each in a place of its own below `foot`; and where all ends.

    Args:
        items: a mark, as SVG around the origin, and its meaning.
        foot: the lowest pixel of what is above.
        across: width of the drawing in pixels.
    """
    parts, x, y = [], 0.0, foot + 18
    for drawn, said in items:
        lines = break_label(said, round(_LETTERS_OF_LEGEND * across)).split("\n")
        width = 16 + max(text_box(line, 0, 0).width for line in lines)
        if x > 0 and x + width > across:
            x, y = 0.0, y + 16
        parts.append(f'<g transform="translate({x + 5:.1f} {y - 4:.1f})">{drawn}</g>')
        parts += [text(x + 13, y + LINE * place, line) for place, line in enumerate(lines)]
        x, y = x + width + 10 if len(lines) == 1 else float(across), y + LINE * (len(lines) - 1)
    return parts, (y if items else foot) + 6


def _legend_items(sheet: Sheet) -> list[tuple[str, str]]:
    places = {place for curve in sheet.projection.curves for place in curve.places if place is not None}
    strays = [one for place in places for one in sheet.figures.strays.get(place, ())]
    steps = any(steps_of(sheet, curve) for curve in sheet.projection.curves)
    soft = sum(not look.named for look in sheet.looks)
    hollow = f'stroke="{INK}" stroke-width="1.1"'
    found = [
        (any(one.excluded for one in strays), f'<path d="{draw_marks(0, [(0, 0)], 2.6)}" {hollow}/>', _EXCLUDED),
        (any(not one.excluded for one in strays), f'<path d="{draw_marks(3, [(0, 0)], 2.6)}" {hollow}/>', _FAR),
        (bool(places & sheet.figures.kinks), f'<circle r="5" {hollow}/>', _KINK),
        (steps, f'<path d="M-5,0H5" stroke="{INK}" stroke-width="5" opacity=".55"/>', _STEP),
        (soft > 0, f'<path d="M-5,0H5" stroke="{OPEN}" opacity=".7"/>', f"{soft} {_OTHERS}"),
    ]
    return [(drawn, said) for there, drawn, said in found if there]
