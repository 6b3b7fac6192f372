"""Where ladders of clients have ended, in words and in JSON."""

import json
from dataclasses import replace

import pytest

from pgstrata.report.json.answer import answer_json
from pgstrata.report.sentences.load import ladder_sentences
from pgstrata.sources.rates import maximum_key
from rendering import render_html, render_text

CLIMBED = {1: 100.0, 2: 190.0, 4: 160.0}


@pytest.fixture
def climbed(desk):
    """An answer of a ladder of 1, 2, 4 clients; the last environment keeps what it has, if wanted."""

    def make(*beyond, falls=True):
        base = desk.cell()
        cells = [replace(base, clients=clients, until_falls=True) for clients in (1, 2, 4, 8, 16)]
        answer = desk.answer(cells=tuple(cell for cell in cells if cell.clients not in beyond))
        names = [each.name for each in answer.study.plan.experiment.environments]
        maxima = {
            maximum_key(name, cell): 200.0 if name == names[-1] and not falls else CLIMBED[cell.clients]
            for name in names
            for cell in cells
            if cell.clients in CLIMBED
        }
        study = replace(answer.study, maxima=maxima, beyond=tuple(cell for cell in cells if cell.clients in beyond))
        return replace(answer, study=study)

    return make


def test_the_end_of_a_ladder_is_told_with_the_best_of_each_environment(climbed):
    (text,) = ladder_sentences(climbed(8, 16).study)
    assert "the ladder ends at 4 clients, where every environment has lost a tenth of its best throughput" in text
    assert "highest throughput: 16 with 2 clients; 18 with 2 clients" in text
    assert text.endswith("cells with 8 and 16 clients are left out")


def test_it_is_in_the_answer(climbed):
    text = " ".join(render_text(climbed(8, 16)).split())
    assert "the ladder ends at 4 clients" in text


def test_a_ladder_that_found_no_fall_says_so(climbed):
    (text,) = ladder_sentences(climbed(8, 16, falls=False).study)
    assert "the ladder ends at 4 clients, though throughput has not fallen in every environment" in text


def test_nothing_is_said_before_the_ladder_was_climbed(climbed):
    assert ladder_sentences(replace(climbed().study, maxima={})) == ()


def test_json_has_what_is_measured_left_out_and_climbed(climbed):
    answer = climbed(8, 16)
    (found,) = json.loads(answer_json(answer))["ladders"]
    assert found["fallen"] is True
    assert [name.rpartition("-")[2] for name in found["cells"]] == ["c1", "c2", "c4"]
    assert [name.rpartition("-")[2] for name in found["left_out"]] == ["c8", "c16"]
    names = [each.name for each in answer.study.plan.experiment.environments]
    assert list(found["climbed"]) == names
    assert found["climbed"][names[0]] == [{"clients": clients, "tps": tps} for clients, tps in CLIMBED.items()]


def test_the_page_tells_the_end_where_the_load_is_drawn(climbed):
    page = render_html(climbed(8, 16))
    assert page.index("Along each axis") < page.index("the ladder ends at 4") < page.index("By clients, with a line")
