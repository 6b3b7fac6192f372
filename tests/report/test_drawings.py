"""Charts as files of their own: the wide drawing alone, panels two in a row, colours for light and dark."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from pgstrata.report.answer.document import make_document
from pgstrata.report.blocks.drawings import list_drawings, stand_alone

NESTED = "{http://www.w3.org/2000/svg}svg"


def svg(look, width, height, inner=""):
    size = "" if "plot" in look else f' width="{width}" height="{height}" style="min-width:3px"'
    return f'<svg class="{look}" viewBox="0 0 {width} {height}"{size}>{inner}</svg>'


def parts(text):
    """Place and size of each drawing, in pixels."""
    root = ET.fromstring(text)
    return [tuple(int(each.get(name)) for name in ("x", "y", "width", "height")) for each in root.findall(NESTED)]


def test_of_two_widths_the_wide_one_is_there():
    text = stand_alone(svg("wide", 900, 300, "<g/>") + svg("narrow", 380, 400), "t")
    assert parts(text) == [(0, 0, 900, 300)]
    root = ET.fromstring(text)
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("924", "324", "-12 -12 924 324")


def test_panels_stand_two_in_a_row_and_their_legend_below_them():
    text = stand_alone("".join([svg("plot", 400, 100)] * 3) + svg("plot legend", 400, 50), "t")
    (first, second, third, legend) = parts(text)
    assert first[:2] == (0, 0)
    assert second[0] > first[2]
    assert second[1] == 0
    assert third[0] == legend[0] == 0
    assert first[3] < third[1] < legend[1]


def test_a_drawing_names_what_it_shows_and_follows_a_dark_page():
    root = ET.fromstring(stand_alone(svg("panel", 384, 200), 'a < b & "c"'))
    assert root[0].text == 'a < b & "c"'
    assert "prefers-color-scheme:dark" in root[1].text


def test_what_is_no_drawing_is_refused():
    with pytest.raises(ValueError, match="no SVG"):
        stand_alone("<p>", "x")


def test_all_charts_of_a_page_are_found_with_their_titles(desk):
    document = make_document(desk.answer(blocks=3))
    found = list(list_drawings(document))
    assert len(found) == 10
    assert all(each.titles for each in found)
    for each in found:
        ET.fromstring(each.svg)
        assert not re.search("https?:(?!//www.w3.org/2000/svg)", each.svg)
