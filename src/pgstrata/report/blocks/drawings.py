"""The charts of a document as files of their own: SVG with the colours that a page would give it, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Final

from pgstrata.report.blocks.model import Block, Details, Document, Figure, OnPage, Section

_DRAWING: Final = re.compile(r"<svg\b(?P<attributes>[^>]*)>(?P<inner>.*?)</svg>", re.DOTALL)
_PLACED: Final = re.compile(r' (?:width|height|style)="[^"]*"')
_LOOK: Final = re.compile(r'\bclass="([a-z ]+)"')
_BOX: Final = re.compile(r'\bviewBox="([-\d.]+) ([-\d.]+) ([-\d.]+) ([-\d.]+)"')
_PLOT: Final = 560.0
"""Pixels of the width of a drawing that has the width of its page."""
_APART: Final = 24.0
_EDGE: Final = 12.0
_STYLE: Final = (
    "svg{color:#1c2127}text{font-family:sans-serif;font-size:11px;fill:currentColor;paint-order:stroke;stroke:#fff;"
    "stroke-width:3px;stroke-linejoin:round}rect+text{stroke:none}.paper{fill:#fff}"
    "@media(prefers-color-scheme:dark){svg{color:#e6e9ec}text{stroke:#14181c}.paper{fill:#14181c}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A chart: its titles from the section to its own, and the SVG as text of a file."""

    titles: tuple[str, ...]
    svg: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One of the drawings of a chart, with its size in pixels."""

    inner: str
    attributes: str
    width: float
    height: float
    whole_row: bool


def list_drawings(document: Document) -> Iterator[Drawing]:
    """All charts of a page of the document, in its order."""
    for titles, figure in _find_figures(document.sections, ()):
        yield Drawing(titles=titles, svg=stand_alone(figure.svg, ": ".join((*titles, figure.label))))


def _find_figures(blocks: Iterable[Block], titles: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Figure]]:
    for block in blocks:
        match block:
            case OnPage():
                yield from _find_figures(block.make(), titles)
            case Section() | Details():
                yield from _find_figures(block.blocks, (*titles, block.title) if block.title else titles)
            case Figure():
                yield (*titles, block.title) if block.title not in {"", *titles[-1:]} else titles, block
            case _:
                pass


def stand_alone(svg: str, title: str) -> str:
    """A chart of a page as an SVG file.

    Of two widths it is the wide one; several panels stand side by side, two in a row.

    Raises:
        ValueError: there is no drawing.
    """
    parts = [part for part in map(_read_part, _DRAWING.finditer(svg)) if part is not None]
    if not parts:
        raise ValueError("the chart is no SVG")
    placed, x, y, row, right = [], 0.0, 0.0, 0.0, 0.0
    for part in parts:
        if x > 0 and (part.whole_row or x > 1.5 * parts[0].width):
            x, y, row = 0.0, y + row + _APART, 0.0
        at = f'x="{x:.0f}" y="{y:.0f}" width="{part.width:.0f}" height="{part.height:.0f}"'
        # texts may be a little wider than they were taken for
        placed.append(f'<svg {at} overflow="visible"{part.attributes}>{part.inner}</svg>')
        x, row, right = x + part.width + _APART, max(row, part.height), max(right, x + part.width)
    width, height = right + 2 * _EDGE, y + row + 2 * _EDGE
    box = f'width="{width:.0f}" height="{height:.0f}" viewBox="{-_EDGE:.0f} {-_EDGE:.0f} {width:.0f} {height:.0f}"'
    paper = f'<rect class="paper" x="{-_EDGE:.0f}" y="{-_EDGE:.0f}" width="100%" height="100%"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f"{head}{paper}{''.join(placed)}</svg>\n"


def _read_part(found: re.Match[str]) -> _Part | None:
    """None of the drawing that only a phone shows."""
    attributes = found["attributes"]
    look = _LOOK.search(attributes)
    looks = look[1].split() if look else []
    box = _BOX.search(attributes)
    if "narrow" in looks or box is None:
        return None
    width, height = float(box[3]), float(box[4])
    if "plot" in looks:
        width, height = _PLOT, height * _PLOT / width
    return _Part(
        inner=found["inner"],
        attributes=_PLACED.sub("", attributes),
        width=width,
        height=height,
        whole_row="legend" in looks or "wide" in looks,
    )
