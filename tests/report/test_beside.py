"""Two studies beside each other: what both have, and no verdict."""

import json

import pytest

from pgstrata.errors import ParseError
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.blocks.text import emit_text
from pgstrata.report.served.beside import make_beside_document, read_figures

CELL = {"identity": "c1", "workload": "select-only", "scale": 1, "clients": 2, "run": 10.0, "rate": None}


def environment(level, control=None):
    return {"name": f"pg{level}", "levels": {"server": level}, "control": control}


def comparison(level, value, ratio, **more):
    return {
        "environment": environment(level),
        "reference": "pg16",
        "cell": CELL,
        "metric": "tps",
        "effect": ratio,
        "interval": [ratio - 0.01, ratio + 0.01],
        "value": value,
        "baseline_value": 1000.0,
    } | more


def study(title, *comparisons, baseline="16"):
    return read_figures(json.dumps({"baseline": environment(baseline), "comparisons": comparisons}), title)


def said(first, second):
    return " ".join(emit_text(make_beside_document(first, second, "1")).split())


def rows(first, second):
    """Environment, both medians, both effects of each row."""
    (section,) = make_beside_document(first, second, "1").sections
    return list(zip(*(column.cells for column in section.blocks[0].columns), strict=True))


def test_medians_and_effects_stand_side_by_side_and_differences_get_no_verdict():
    both = study("old", comparison("17", 1100.0, 1.1)), study("new", comparison("17", 2400.0, 1.2))
    assert rows(*both) == [
        ("16", "1,000/s", "1,000/s", "baseline", "baseline"),
        ("17", "1,100/s", "2,400/s", "+10.0 % [+9.0, +11.0]", "+20.0 % [+19.0, +21.0]"),
    ]
    text = said(*both)
    assert "So there is no verdict on them." in text
    for word in ("faster", "slower", "better", "worse"):
        assert word not in text


def test_the_cells_may_have_other_names():
    other = study("new", comparison("17", 2400.0, 1.2, cell=CELL | {"identity": "c9"}))
    assert "2,400/s" in said(study("old", comparison("17", 1100.0, 1.1)), other)


@pytest.mark.parametrize(
    "more",
    [
        {"cell": CELL | {"clients": 3}},
        {"cell": CELL | {"run": 20.0}},
        {"metric": "latency_p95"},
        {"cell": "all"},
        {"environment": environment("17", "same")},
    ],
)
def test_what_only_one_has_is_left_out(more):
    first = study("old", comparison("17", 1100.0, 1.1))
    assert "They have no cell and environment in common" in said(
        first, study("new", comparison("17", 2.0, 1.2, **more))
    )


@pytest.mark.parametrize(
    ("more", "name"),
    [({"clients": 1}, "select-only, scale 1, 1 client"), ({"scale": None}, "select-only, 2 clients")],
)
def test_cells_are_named_as_in_reports(more, name):
    one = study("old", comparison("17", 1100.0, 1.1, cell=CELL | more))
    assert f" {name} 17 " in said(one, one)


def test_another_level_is_left_out_and_the_baseline_stays():
    both = study("old", comparison("17", 1100.0, 1.1)), study("new", comparison("18", 1300.0, 1.3))
    assert [row[0] for row in rows(*both)] == ["16"]


def test_what_is_not_known_is_left_empty():
    unknown = comparison("17", None, 1.1, effect=None, interval=None, baseline_value=None)
    known = study("old", comparison("17", 1100.0, 1.1))
    assert rows(known, study("new", unknown))[1] == ("17", "1,100/s", "", "+10.0 % [+9.0, +11.0]", "")


def test_texts_of_a_study_become_no_markup():
    cell = CELL | {"workload": "<b>evil</b>\x1b"}
    one = study("<i>old</i>", comparison("17", 1100.0, 1.1, cell=cell))
    page = emit_page(make_beside_document(one, one, "1"))
    assert "&lt;b&gt;evil&lt;/b&gt;?" in page
    assert "&lt;i&gt;old&lt;/i&gt;" in page
    assert "<b>evil" not in page
    assert "<i>old" not in page


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"baseline": 1, "comparisons": [{}]}', '{"baseline": {}}'])
def test_what_is_no_answer_is_refused(text):
    with pytest.raises(ParseError, match="the answer of the study cannot be read"):
        read_figures(text, "study")


def test_which_study_is_which_is_said_once_and_above_the_tables():
    both = study("old", comparison("17", 1100.0, 1.1)), study("new", comparison("17", 2400.0, 1.2))
    text = said(*both)
    assert text.count("A: old. B: new.") == 1
    assert text.index("A: old. B: new.") < text.index("median, A")
