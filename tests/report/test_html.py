from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from pgstrata.model.answer import Verdict
from pgstrata.model.doubts import NamedDoubt
from pgstrata.model.experiment import ControlKind
from pgstrata.model.runs import StatementLatency
from pgstrata.report.blocks.model import Column, Document, Figure, Section, Table
from pgstrata.report.blocks.page import emit_page
from rendering import render_html

_EVIL = "<script>alert('x')</script>"
_VOID = {"meta", "br", "wbr", "img", "hr", "link", "input"}


class Balance(HTMLParser):
    """Every element that is opened is closed; ids are unique."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.ids = []

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(module_desk):
    return render_html(module_desk.answer())


def test_the_answer_stands_above_everything_else(page):
    body = page.split("<body>")[1]
    assert 0 < body.index("18 is slower than 16: -") < body.index("<svg")


def test_the_file_needs_nothing_from_anywhere_else(page):
    assert not re.search("https?:", page)
    assert not re.search(r"<(script|link|iframe|img|object)\b", page)
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", page)
    assert "@import" not in page


def test_the_page_is_well_formed_and_ids_are_unique(page):
    balance = Balance()
    balance.feed(page)
    assert balance.open == []
    assert len(set(balance.ids)) == len(balance.ids)


def test_every_chart_is_described_for_those_who_do_not_see_it(page):
    charts = re.findall(r'<div class="chart" role="img" aria-label="[^"]+">(.*?)</div>', page, flags=re.DOTALL)
    assert len(charts) == page.count('role="img"') == 10
    assert sum(chart.count("<svg") for chart in charts) == page.count("<svg")
    assert 'aria-label=""' not in page


def test_the_same_answer_gives_the_same_page(desk, page):
    assert render_html(desk.answer()) == page


def test_invalid_runs_settings_overhead_and_the_experiment_are_there(page, desk):
    text = re.sub(r"<[^>]*>", "", page)
    for expected in ("the wall clock jumped", "synchronous_commit = on", "checkpoint", "threshold = &#34;3 %&#34;"):
        assert expected in re.sub(r"\s+", " ", text), expected


def test_a_control_that_differs_is_an_alarm(desk):
    page = render_html(desk.verdict_answer(desk.comparison(environment="pg16-control", control=True)))
    assert '<p class="alarm" role="alert">THE CONTROL DIFFERS FROM ITSELF' in page


def test_text_from_outside_is_escaped_wherever_it_appears(desk):
    environments = (
        desk.environment("pg16", (("server", "16"),)),
        desk.environment("b", (("server", _EVIL), ("settings.application_name", _EVIL))),
        desk.environment("c", (("server", "16"),), ControlKind.SAME),
    )
    answer = desk.answer(environments=environments, effects=(1.0, 1.1, 1.0), blocks=3)
    experiment = dataclasses.replace(answer.study.plan.experiment, question=_EVIL, text=_EVIL, notes=(_EVIL,))
    study = dataclasses.replace(
        answer.study,
        name=_EVIL,
        version=_EVIL,
        created=_EVIL,
        plan=dataclasses.replace(answer.study.plan, experiment=experiment),
        host=dataclasses.replace(answer.study.host, facts={"host.cpu": _EVIL, _EVIL: "x"}),
    )
    warning = NamedDoubt(code="clock_source", names=(_EVIL,))
    page = render_html(dataclasses.replace(answer, study=study, warnings=(warning,)))
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_the_statements_of_a_profile_are_shown_and_escaped(desk):
    answer = desk.answer(blocks=2)
    statement = StatementLatency(text=f"SELECT '{_EVIL}';", seconds=0.0012)
    runs = tuple(dataclasses.replace(run, statements=(statement,)) for run in answer.study.runs)
    page = render_html(dataclasses.replace(answer, study=dataclasses.replace(answer.study, runs=runs)))
    assert "<script" not in page
    assert "SELECT &#39;&lt;script&gt;" in page.replace('<span class="word">', "")
    assert "1.2\xa0ms" in page


def test_a_report_without_a_profile_has_no_statements(page):
    assert "Statements:" not in page


def test_the_time_around_the_runs_and_the_fingerprints_are_folded(page):
    folded = re.findall(r"<details><summary>(.*?)</summary>", page)
    assert any("measured," in summary and "of set-up overhead" in summary for summary in folded)
    assert any(summary.startswith("Fingerprints") for summary in folded)


def test_settings_that_only_one_server_has_are_named_in_the_fingerprints(desk):
    answer = desk.answer(blocks=1)
    environments = dict(answer.study.environments)
    for name in ("pg18", "pg18-async"):
        facts = {**environments[name].facts, "settings.new_b": "1", "settings.new_a": _EVIL}
        environments[name] = dataclasses.replace(environments[name], facts=facts)
    study = dataclasses.replace(answer.study, environments=environments)
    page = render_html(dataclasses.replace(answer, study=study))
    assert "Only in 18 (2): new_a, new_b" in page
    assert '<th scope="row">settings.new_a</th>' not in page


def test_what_was_not_measured_is_said(page):
    part = page.split("What this does not say")[1]
    assert "One machine" in part
    assert "closed loop" in part.lower()


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_can_be_shown(desk, verdict):
    comparison = desk.comparison(verdict=verdict, effect=None, interval=None)
    assert f'class="verdict {verdict}"' in render_html(desk.verdict_answer(comparison))


def test_many_client_counts_are_drawn_as_a_curve(desk):
    cells = tuple(desk.cell(clients) for clients in (1, 4, 16))
    page = render_html(desk.answer(cells=cells, blocks=2))
    assert "<figcaption>simple-update, scale 10, by clients</figcaption>" in page
    assert ">difference from 16, %</text>" in page


def test_long_names_are_broken_into_lines_in_charts(desk):
    name = "prefix:/usr/lib/postgresql/a-very-long-path/to/some/place/15"
    environments = (
        desk.environment("pg16", (("server", "16"),)),
        desk.environment("b", (("server", name), ("settings.shared_buffers", "4GB"))),
    )
    page = render_html(desk.answer(environments=environments, effects=(1.0, 1.1), blocks=2))
    effects = page.split("<svg")[1].split("</svg>")[0]
    assert name not in effects
    assert "<tspan" in effects


def test_long_names_of_rows_are_broken_between_their_parts_and_within_a_part_only_if_it_is_long(desk):
    place = "averylongpathwithoutanyplacetobreakit"
    environments = (
        desk.environment("pg18", (("server", "18"), ("options.extra_work", "0"))),
        desk.environment("b", (("server", "18"), ("options.extra_work", "1000"), ("settings.search_path", place))),
    )
    page = render_html(desk.answer(environments=environments, effects=(1.0, 1.1), blocks=2))
    name = f'>18 (options.<wbr>extra_<wbr>work = 1000, search_<wbr>path = <span class="word">{place})</span></th>'
    assert name in page
    assert "<dt>cpu</dt>" in page


def test_nothing_is_run_or_loaded_even_if_it_came_into_the_page(page):
    policy = re.search('<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert policy
    assert page.index(policy[0]) < page.index("<style>")
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].split(";"))
    assert rules.pop("style-src") == "'unsafe-inline'"
    assert set(rules) == {"default-src", "base-uri", "form-action"}
    assert set(rules.values()) == {"'none'"}
    assert "<script" not in page


@pytest.mark.slow
@pytest.mark.parametrize("sliced", [False, True])
def test_a_study_of_5000_runs_gives_a_report_of_less_than_3_megabytes(desk, sliced):
    environments = tuple(desk.environment(f"pg{number}", (("server", str(number)),)) for number in range(11, 19))
    cells = tuple(
        desk.cell(clients, workload)
        for workload in ("select-only", "simple-update")
        for clients in (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
    )
    answer = desk.answer(environments=environments, cells=cells, blocks=24)
    assert len(answer.study.runs) == 4992
    page = render_html(desk.slices(answer) if sliced else answer)
    assert len(page.encode()) < 3_000_000


def test_drawing_is_imported_only_when_something_is_drawn():
    code = "import sys, pgstrata.report.answer.document, pgstrata.report.blocks.page; print('altair' in sys.modules, 'vl_convert' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


def test_numbers_do_not_part_from_their_unit_but_what_is_copied_out_stays_as_it_is(page):
    assert "is slower than 16" in page
    body = page.split("<body>")[1]
    prose = re.sub(r"<(pre|svg)\b.*?</\1>|<[^>]*>", "", body, flags=re.DOTALL)
    assert re.search("\\d\xa0%", prose)
    assert not re.search(r"\d %", prose)
    assert "threshold = &#34;3 %&#34;" in body


def test_headlines_have_a_part_of_their_own_before_single_cells(desk):
    page = render_html(desk.headlines(desk.answer(blocks=3)))
    assert 0 < page.index("<h2>All 2 cells together") < page.index("<h2>Cell by cell")
    assert "adjusted p" in page


def test_a_study_of_one_cell_has_no_part_for_headlines(desk):
    page = render_html(desk.answer(blocks=2, cells=(desk.cell(),)))
    assert "cells together" not in page
    assert "<h2>What was measured" in page


def test_slices_are_drawn_turn_by_turn(desk):
    page = render_html(desk.slices(desk.answer(blocks=3)))
    assert "<h2>Turn by turn" in page
    assert "tps of a slice, log" in page
    assert "Measured in 16 slices of 250\xa0ms" in page


def test_factors_steps_pairs_and_percentiles_have_their_parts(desk):
    answer = dataclasses.replace(
        desk.answer(blocks=3), effects=(desk.effect(), desk.interaction()), axes=(desk.axis(),)
    )
    pair = desk.comparison(environment="pg18-async", reference="pg18")
    shifts = tuple(desk.shift(percent) for percent in (10, 50, 95, 99))
    page = render_html(dataclasses.replace(answer, shifts=shifts, pairs=(pair,)))
    for heading in (
        "Factors and what they depend on",
        "Steps along ordered factors",
        "Environments against each other",
    ):
        assert f"<h2>{heading}" in page
    assert "Environments against each other: simple-update, scale 10, 2 clients" in page
    assert "18 (commit_delay = 100) against 18<" in page.replace("<wbr>", "")
    assert "percentile of latency" in page
    assert "one band, which holds for all percentiles together" in page
    assert "+9.9\xa0%" in page


def test_how_the_verdicts_came_about_is_drawn(page):
    assert "<h2>How the verdicts came about" in page


def test_what_holds_for_all_cells_is_said_once(desk):
    page = render_html(desk.answer(cells=(desk.cell(2), desk.cell(4))))
    assert page.count("Throughput: median of the runs.") == 1


def test_only_tables_with_many_columns_name_the_column_of_each_field():
    def table(number):
        columns = tuple(Column(title=f"column {place}", cells=("+1.0 % [+0.5, +1.5]",)) for place in range(number))
        return Table(names=Column(title="row", cells=("a",)), columns=columns)

    def page(number):
        return emit_page(
            Document(
                name="x", title="x", summary="x", answer=(), doubts=(), colophon="x",
                sections=(Section("x", (table(number),)),),
            )
        )  # fmt: skip

    assert 'class="wide"' not in page(3)
    assert "data-column=" not in page(3)
    assert page(9).count("data-column=") == 9
    assert '<table class="wide">' in page(9)


@pytest.mark.parametrize(("height", "long"), [(800, False), (4000, True)])
def test_charts_that_are_too_long_for_paper_are_marked(height, long):
    drawn = f'<svg class="wide" viewBox="0 0 900 {height}"></svg><svg class="narrow" viewBox="0 0 380 9000"></svg>'
    figure = Figure(title="", label="x", draw=lambda: drawn)
    sections = (Section("x", (figure,)),)
    page = emit_page(Document(name="x", title="x", summary="x", answer=(), doubts=(), colophon="x", sections=sections))
    assert ('class="chart long"' in page) == long
