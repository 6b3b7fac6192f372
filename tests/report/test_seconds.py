from __future__ import annotations

import dataclasses
import json
import random
import re

from pgstrata.model.experiment import Cell, Script
from pgstrata.model.metrics import Series
from pgstrata.report.answer.notes import cell_notes, say_seconds
from pgstrata.report.json.answer import answer_json
from pgstrata.report.sentences.names import say_claim

_CELL = "simple-update-s10-c2"


def with_seconds(study):
    """Every run with a minute of throughput, independent from second to second."""
    draws = random.Random(5)
    runs = []
    for run in study.runs:
        values = tuple(draws.gauss(1000, 20) for _ in range(60))
        series = Series(metric="tps", times=tuple(range(1, 61)), values=values)
        runs.append(dataclasses.replace(run, series=(series,)))
    return dataclasses.replace(study, runs=tuple(runs))


def test_a_cell_says_what_its_seconds_are_worth(desk):
    study = with_seconds(desk.answer(blocks=9).study)
    text = say_seconds(study, _CELL)
    assert re.fullmatch(r"A run \(1 min\) is worth about \d\d independent seconds", text), text


def test_runs_too_short_to_tell_say_nothing(desk):
    study = desk.answer(blocks=9).study
    bare = dataclasses.replace(study, runs=tuple(dataclasses.replace(run, series=()) for run in study.runs))
    assert say_seconds(bare, _CELL) == ""


def test_it_stands_beside_the_tables_and_in_the_document(desk):
    answer = desk.answer(blocks=9)
    answer = dataclasses.replace(answer, study=with_seconds(answer.study))
    cell = answer.study.plan.experiment.cell(_CELL)
    assert say_seconds(answer.study, _CELL) in cell_notes(answer, cell)
    (entry,) = [entry for entry in json.loads(answer_json(answer))["seconds"] if entry["cell"] == _CELL]
    assert entry["runs"] == 35  # one is invalid
    assert 1 <= entry["worth"] <= entry["seconds"] == 60


def test_beside_figures_of_order_entry_stands_that_they_are_no_audited_result():
    cell = Cell(workload="tpcc", scale=1, clients=1, threads=1)
    assert say_claim(cell) == "order entry as in TPC-C, but no audited TPC result, and not to be compared with one"
    assert "no audited TPC result" in say_claim(dataclasses.replace(cell, workload="sysbench-tpcc"))
    assert say_claim(dataclasses.replace(cell, workload="select-only")) == ""
    assert say_claim(dataclasses.replace(cell, scripts=(Script(file="mine.sql", text="SELECT 1;"),))) == ""
