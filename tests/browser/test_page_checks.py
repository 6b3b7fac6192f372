"""The checks find what they are there for: in pages with one fault each."""

import pytest

from page_checks import DESK, PHONE, look, read_first_screen, show, tab_through

pytestmark = pytest.mark.browser

HEAD = (
    "<!doctype html><meta charset='utf-8'><title>x</title><style>body { margin: 0; color: #000; background: #fff; "
    "font: 16px/1.5 sans-serif } :focus-visible { outline: 3px solid #00598c }</style>"
)
WIDE = "<div style='width: 900px'>wide</div>"


def svg(inner, more=""):
    return f"<div class='chart'><svg width='300' height='100' {more}>{inner}</svg></div>"


DARK = "<path d='M0,0h300v100h-300z' fill='#222'/>"
BEFORE = svg("<text x='-50' y='30'>before the edge</text>", "style='overflow: visible'")


@pytest.fixture
def write(tmp_path):
    def write(body):
        page = tmp_path / "page.html"
        page.write_text(HEAD + body, encoding="utf-8")
        return page

    return write


def found(tab, page):
    return "\n".join(look(tab, page, PHONE))


@pytest.mark.parametrize(
    "body",
    [
        "<p>Words that are broken into lines and have room.</p>",
        f"<div class='scroll' style='overflow-x: auto'>{WIDE}</div>",
        "<details><summary>more</summary><p>folded</p></details>",
        svg("<text x='10' y='30'>above</text><text x='10' y='50'>below</text>"),
        svg(
            "<text transform='translate(60 60) rotate(-50)'>turned</text><text transform='translate(80 60) rotate(-50)'>turned</text>"
        ),
        svg("<rect width='300' height='100' fill='#000'/><text x='10' y='30' fill='#fff'>white on black</text>"),
        svg(f"{DARK}<text x='10' y='30' style='paint-order: stroke; stroke: #fff; stroke-width: 3px'>in a halo</text>"),
        "<p style='font-size: 30px; color: #888'>large and grey</p>",
    ],
)
def test_a_page_without_a_fault_has_no_finding(tab, write, body):
    assert found(tab, write(body)) == ""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (WIDE, "the page is 900 px wide in a window of 390 px"),
        (f"<div>{WIDE}</div>", "reaches from 0 to 900 px in a window of 390 px"),
        ("<p>" + "long" * 60 + "</p>", "reaches from 0 to"),
        (f"<div style='overflow-x: hidden'>{WIDE}</div>", "hides 510 px of its width"),
        (f"<div style='overflow-x: auto'>{WIDE}</div>", "scrolls sideways by 510 px"),
        (f"<div class='chart' style='overflow: auto hidden'>{WIDE}</div>", "scrolls sideways by 510 px"),
        (f"<details><summary>more</summary>{WIDE}</details>", "900 px wide"),
        (svg("<text x='380' y='30'>beyond the edge</text>", "style='overflow: visible'"), "beyond the edge"),
        (f"<div style='padding-left: 99px'><div style='overflow: auto'>{BEFORE}</div></div>", "cannot be scrolled to"),
        (svg("<text x='10' y='30'>first</text><text x='20' y='35'>second</text>"), '"first" and "second" overlap'),
        (
            svg("<text x='10' y='30'><tspan x='10'>first</tspan><tspan x='10' dy='4'>second</tspan></text>"),
            '"first" and "second" overlap',
        ),
        (
            svg(
                "<text transform='translate(60 60) rotate(-50)'>turned</text><text transform='translate(63 60) rotate(-50)'>turned</text>"
            ),
            '"turned" and "turned" overlap',
        ),
        ("<p style='margin: 0'>under</p><p style='margin: -20px 0 0'>over</p>", '"under" and "over" overlap'),
        (svg("<text x='10' y='30'>tiny</text>", "viewBox='0 0 900 300'"), "are set in 5.3 px"),
        ("<p style='font-size: 7px'>tiny</p>", "are set in 7 px"),
        ("<p style='color: #999'>pale</p>", "have 2.8:1, not 4.5:1"),
        ("<p style='color: rgb(0 0 0 / .4)'>pale</p>", "not 4.5:1"),
        ("<p style='font-size: 30px; color: #bbb'>large and pale</p>", "not 3:1"),
        (
            "<div style='background: color-mix(in srgb, #000 80%, #fff)'><p style='margin: 0'>dark on dark</p></div>",
            "dark on dark",
        ),
        (svg("<text x='10' y='30' fill='#aaa'>pale</text>"), '"pale" have'),
        (svg("<text x='10' y='30' opacity='.3'>pale</text>"), '"pale" have'),
        (svg(f"{DARK}<text x='10' y='30'>dark on dark</text>"), "dark on dark"),
        (svg(f"{DARK}<text x='10' y='30' style='stroke: #fff; stroke-width: 3px'>no halo</text>"), "no halo"),
    ],
)
def test_each_fault_is_found(tab, write, body, said):
    assert said in found(tab, write(body))


def test_a_chart_scrolls_on_a_desk_no_more_than_on_a_phone_but_other_things_may(tab, write):
    inner = "<div style='width: 1500px'>wide</div>"
    charts, others = (f"<div class='{kind}' style='overflow-x: auto'>{inner}</div>" for kind in ("chart", "other"))
    assert "scrolls sideways by 100 px" in "\n".join(look(tab, write(charts), DESK))
    assert look(tab, write(others), DESK) == []


def test_a_fault_of_one_colour_scheme_is_found_in_that_one(tab, write):
    page = write("<style>@media (prefers-color-scheme: dark) { body { background: #111 } }</style><p>black</p>")
    assert found(tab, page).startswith("dark: ")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<a href='#a'>one</a><a href='#b' tabindex='-1'>two</a><a href='#c'>three</a>", None),
        (f"<div style='overflow: auto'>{WIDE}</div>", None),
        ("<a href='#a'>one</a><a href='#b' tabindex='1'>two</a>", "after 0 stops the focus is on"),
        ("<a href='#a' style='outline: none'>one</a>", "has no outline of 2 px"),
        ("<a href='#a' style='outline: 3px solid #eee'>one</a>", "the outline of"),
    ],
)
def test_what_a_keyboard_does_not_reach_or_show_is_found(tab, write, body, said):
    show(tab, write(body), PHONE)
    wrong = "\n".join(tab_through(tab))
    assert said in wrong if said else wrong == ""


def test_the_first_screen_is_measured_where_each_thing_ends(tab, write):
    answer = (
        "<div class='answer'><p>16 is slower than 17: -3.1 % [-4.2, -1.9].</p><p class='minor control'>as it must be</p>"
        "<div class='scroll' style='height: 100px'></div></div>"
    )
    bottoms = read_first_screen(tab, write(answer), PHONE)
    assert bottoms["answer"] == bottoms["interval"] < bottoms["controls"] < bottoms["matrix"] < 300
    unknown = read_first_screen(tab, write("<div class='answer'><p>Cannot tell [yet].</p></div>"), PHONE)
    assert unknown["answer"] > 0
    assert [unknown[name] for name in ("interval", "controls", "matrix")] == [None, None, None]
