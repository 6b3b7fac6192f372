from __future__ import annotations

import dataclasses

from pgstrata.report.answer.environment_rows import arrange_cells
from pgstrata.report.answer.tables import percentile_table
from pgstrata.report.figures.percentiles import draw_quantiles, name_percentile, shifts_of

_CELL = "simple-update-s10-c2"
_ALL = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)


def shifted(desk, *percents, environments=("pg18",)):
    shifts = tuple(desk.shift(percent, environment=name) for name in environments for percent in percents)
    return dataclasses.replace(desk.verdict_answer(desk.comparison()), shifts=shifts)


def test_percentiles_are_those_of_the_cell(desk):
    answer = shifted(desk, 50, 95)
    assert [name_percentile(item) for item in shifts_of(answer, _CELL)] == ["p50", "p95"]
    assert shifts_of(answer, "elsewhere") == ()


def test_all_percentiles_are_drawn_with_their_intervals(desk):
    figure = draw_quantiles(shifted(desk, *_ALL, environments=("pg18", "pg18-async")), _CELL, "x")
    assert all(f">p{percent}<" in figure.svg for percent in _ALL)
    assert "band" in figure.label


def test_three_percentiles_make_a_chart_and_two_do_not(desk):
    assert draw_quantiles(shifted(desk, 50, 95), _CELL, "x") is None
    figure = draw_quantiles(shifted(desk, 50, 95, 99), _CELL, "x")
    assert [f">p{percent}<" in figure.svg for percent in (10, 50, 95, 99)] == [False, True, True, True]


def test_the_table_has_a_column_for_each_percentile_with_its_threshold(desk):
    answer = shifted(desk, 10, 99)
    shifts = (*answer.shifts, desk.shift(50, environment="pg18-async", baseline_value=0.004, threshold=0.032))
    answer = dataclasses.replace(answer, shifts=shifts)
    cell = next(each for each in arrange_cells(answer) if each.cell.identity == _CELL)
    table = percentile_table(answer, cell.cell, cell.rows)
    assert [column.title for column in table.columns] == [
        "p10, threshold 3 %",
        "p50, threshold 3.2 %",
        "p99, threshold 3 %",
    ]
    assert [column.cells[table.names.cells.index("16")] for column in table.columns] == ["1.8 ms", "4 ms", "1.8 ms"]
    assert table.columns[1].texts[table.names.cells.index("18")] == "-"
