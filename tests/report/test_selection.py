"""Some of the comparisons of a study: what is left, how it is arranged, and what cannot be asked."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from pgstrata.errors import UsageError
from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.experiment import ControlKind
from pgstrata.report.answer.selection import make_selected_document, parse_selection, select
from pgstrata.report.blocks.terminal import emit_terminal
from pgstrata.report.blocks.text import emit_text

PAGES = "pages"
DELAY = "settings.commit_delay"


@pytest.fixture(scope="module")
def answer(module_desk):
    """16 and 18 crossed with two sizes of pages, and a control; two cells."""
    desk = module_desk
    crossed = [
        desk.environment(f"{server}-{pages}", (("server", server), (PAGES, pages), (DELAY, "on")))
        for server in ("16", "18")
        for pages in ("4kB", "2MB")
    ]
    control = desk.environment("again", (("server", "16"), (PAGES, "4kB"), (DELAY, "on")), ControlKind.SAME)
    return desk.headlines(desk.answer(environments=(*crossed, control), effects=(1.0, 1.1, 0.8, 0.9, 1.0)))


def chosen(answer, *filters, by=None, sort=None):
    return parse_selection(filters, by, sort, answer.study.plan.experiment)


def left(answer, *filters, **more):
    return {(item.environment, item.cell) for item in select(answer, chosen(answer, *filters, **more))}


def test_without_a_filter_everything_stays(answer):
    assert left(answer) == {(item.environment, item.cell) for item in answer.comparisons if item.metric == "tps"}


def test_levels_of_one_factor_are_alternatives_and_factors_narrow_each_other(answer):
    assert {name for name, _ in left(answer, "server=18")} == {"18-4kB", "18-2MB"}
    assert {name for name, _ in left(answer, "server=18,16", "pages=2mb")} == {"16-2MB", "18-2MB"}
    assert {name for name, _ in left(answer, "server=18", "server=16")} == {"16-2MB", "18-4kB", "18-2MB", "again"}
    assert {name for name, _ in left(answer, "server=18", "pages=2MB")} == {"18-2MB"}


def test_settings_go_by_their_own_names_and_booleans_by_either(answer):
    assert left(answer, "commit_delay=true") == left(answer, "settings.commit_delay=on") == left(answer)


def test_cells_are_chosen_by_what_they_have_and_the_whole_of_all_cells_is_left_out(answer):
    assert {cell for _, cell in left(answer, "workload=select-only")} == {"select-only-s10-c2"}
    assert ALL_CELLS not in {cell for _, cell in left(answer, "clients=2")}


@pytest.mark.parametrize(
    ("filters", "more", "said"),
    [
        (["sever=18"], {}, "did you mean 'server'?"),
        (["server=17"], {}, "the levels 16, 18"),
        (["server"], {}, "write FACTOR=LEVEL"),
        (["server="], {}, "write FACTOR=LEVEL"),
        (["server=16", "pages=4kB", "workload=nothing"], {}, "simple-update"),
        ([], {"by": "page"}, "did you mean 'pages'?"),
        ([], {"sort": "efect"}, "did you mean 'effect'?"),
        ([], {"sort": "effect", "by": "server"}, "give one of them"),
    ],
)
def test_what_the_study_does_not_have_is_refused_with_what_it_has(answer, filters, more, said):
    with pytest.raises(UsageError) as refused:
        chosen(answer, *filters, **more)
    assert said in refused.value.remedy


def test_nothing_left_is_said(module_desk):
    desk = module_desk
    two = tuple(desk.environment(f"pg{number}", (("server", number),)) for number in ("16", "18"))
    answer = desk.answer(environments=two, effects=(1.0, 0.9))
    with pytest.raises(UsageError, match="no comparison with 16 is left"):
        left(answer, "server=16")


def test_by_a_factor_its_levels_are_columns_and_all_else_is_a_row(answer):
    matrix = make_selected_document(answer, chosen(answer, "workload=select-only", by="server")).matrix
    assert (matrix.corner, matrix.columns) == ("server", ("16", "18"))
    assert len(matrix.rows) == 3
    fields = dict(zip(matrix.rows, matrix.effects, strict=True))
    (two,) = (row for row in matrix.rows if "2MB" in row)
    assert [bool(field) for field in fields[two]] == [True, True]
    assert fields[two][0].change != fields[two][1].change
    assert "select-only" in two
    (again,) = (row for row in matrix.rows if "second" in row)
    assert [bool(field) for field in fields[again]] == [True, False]


def test_by_what_cells_have_the_columns_are_cells(answer):
    matrix = make_selected_document(answer, chosen(answer, "server=18", by="workload")).matrix
    assert matrix.columns == ("simple-update", "select-only")
    assert len(matrix.rows) == 2
    assert all(all(row) for row in matrix.effects)


def test_no_comparison_is_lost_in_a_matrix(answer):
    for by in ("server", "pages", "commit_delay", "workload", "clients", "scale"):
        document = make_selected_document(answer, chosen(answer, by=by))
        there = sum(field is not None for row in document.matrix.effects for field in row)
        assert there == len(select(answer, chosen(answer, by=by))), by


def names_of(answer, sort):
    (section,) = make_selected_document(answer, chosen(answer, sort=sort)).sections
    (table,) = section.blocks
    return table.names.cells, dict(zip(table.names.cells, table.columns[0].cells, strict=True))


def test_lists_are_sorted_by_effect_by_name_or_by_cell(answer):
    names, effects = names_of(answer, "effect")
    sizes = [abs(float(effects[name].removesuffix(" %").removeprefix("±"))) for name in names]
    assert (sizes[0], sizes[-1]) == (max(sizes), min(sizes))
    names, _ = names_of(answer, "name")
    assert list(names) == sorted(names, key=lambda name: name.rpartition(",")[0])
    names, _ = names_of(answer, "cell")
    cells = [name.rpartition(", ")[2] for name in names]
    assert cells == sorted(cells, key=["all cells together", "simple-update", "select-only"].index)


def test_it_says_how_many_are_shown_and_fits(answer):
    document = make_selected_document(answer, chosen(answer, "server=18", by="pages"))
    text = emit_text(document)
    assert "verdicts are those of the whole study" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 78
    console = Console(width=70, file=io.StringIO())
    console.print(emit_terminal(document, 70))
    assert max(map(len, console.file.getvalue().splitlines())) <= 70


@pytest.mark.parametrize("columns", [30, 40, 50, 80])
def test_on_a_narrow_terminal_each_row_has_all_its_figures(answer, columns):
    document = make_selected_document(answer, chosen(answer, sort="name"))
    console = Console(width=columns, file=io.StringIO())
    console.print(emit_terminal(document, columns))
    said = console.file.getvalue()
    table = next(column for column in document.sections[0].blocks[0].columns if column.title == "verdict")
    words = " ".join(said.replace("- ", " ").split())
    assert max(map(len, said.splitlines())) <= columns
    assert all(words.count(word) >= table.texts.count(word) for word in set(table.texts) if word)
