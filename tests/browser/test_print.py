"""Reports on paper: nothing is cut, nothing is dark, and there are not more pages than a reader turns."""

import re

import pytest

from page_checks import DESK, PAPER, look_at_paper, show
from shown_pages import CHARTS, LIVE, SERVED, of_pages

pytestmark = pytest.mark.browser


@of_pages("2x1", "13x12-long", "13x12", "13x72", "60x1", "60x12", "2x72-long", *CHARTS, *LIVE, *SERVED)
def test_nothing_is_cut_overlaps_or_is_hard_to_read_on_paper(tab, page_of, name):
    assert look_at_paper(tab, page_of(name)) == []


@pytest.mark.parametrize(
    ("name", "most"), [("2x1", 6), ("rich", 16), ("explain", 6), ("decide", 6), ("13x12-long", 80)]
)
def test_a_report_has_a_sane_number_of_pages(tab, page_of, name, most):
    show(tab, page_of(name), DESK, "dark")
    assert 1 < len(re.findall(rb"/Type /Page\b", tab.print())) <= most


def test_paper_is_light_where_the_screen_is_dark(tab, page_of):
    show(tab, page_of("13x12-long"), PAPER, "dark")
    colours = "['body', '.answer', 'td.field:not(.d1, .d2, .d3, .d4)'].map((each) => getComputedStyle(document.querySelector(each)).backgroundColor)"
    on_screen = tab.run(colours)
    tab.prefer("dark", "print")
    on_paper = tab.run(colours)
    assert on_paper == ["rgb(255, 255, 255)", "rgb(244, 246, 248)", "rgb(255, 255, 255)"]
    assert not set(on_paper) & set(on_screen)


def test_each_field_of_a_wide_matrix_is_named_on_paper(tab, page_of):
    show(tab, page_of("13x12-long"), PAPER)
    tab.prefer("light", "print")
    headings, names = (
        tab.run(f"Array.from(document.querySelectorAll('.answer table.wide {each}'), {said})")
        for each, said in (
            ("thead th:not(:first-child)", "(each) => each.textContent"),
            ("tbody tr:first-child td", "(each) => getComputedStyle(each, '::before').content"),
        )
    )
    assert len(headings) == 13
    assert [name.strip('"') for name in names] == headings


def test_what_is_folded_is_marked_on_paper_and_said_once(tab, page_of):
    show(tab, page_of("2x1"), PAPER)
    tab.prefer("light", "print")
    content = "getComputedStyle(document.querySelector('{}'), '::{}').content"
    assert "▸" in tab.run(content.format("details:not([open]) > summary", "before"))
    assert "not printed" in tab.run(content.format(".kicker", "after"))
    tab.run("pageChecks.openAll()")
    assert tab.run(content.format(".kicker", "after")) == "none"
