"""A search keeps what it has, skips what cannot be measured, and stops with what is known."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from compared import compared as make_compared
from fake_clock import RecordingEvents
from pgstrata.app import bisect
from pgstrata.app.bisect import SKIPPED_FILE, Bisect, Measured, StudyMeasure
from pgstrata.app.search_questions import SearchQuestion, ask_factor, search_folder
from pgstrata.errors import (
    ExitCode,
    HostNotFitError,
    LevelNotTakenError,
    PgstrataError,
    ServerFailedError,
    StudyError,
    UsageError,
)
from pgstrata.model.answer import Verdict
from pgstrata.model.bisect import Outcome
from pgstrata.plan.bisection import levels_along
from pgstrata.report.answer.numbers import render_numbers, search_numbers
from pgstrata.report.blocks.markdown import emit_markdown
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.commands.bisect import bisection_json, render_bisection
from pgstrata.report.commands.search_page import make_search_document
from pgstrata.store.repository import StudyFolders
from studies import CELL, make_environment, make_experiment

SERVERS = ("14", "15", "16", "17", "18", "19", "20", "21")
FILE = """
question = "?"
blocks = 12
[factors]
"options.extra_work" = [0, 1, 50000, 50001]
server = ["16", "18"]
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
"""


class FakeMeasure:
    """Levels as they truly are, as values of the metric; errors instead of values, or verdicts that do not decide."""

    def __init__(self, truth):
        self.truth = truth
        self.asked = []

    def __call__(self, experiment, name):
        first, level = experiment.environments
        self.asked.append((level.name, experiment.threshold, name))
        value = self.truth[level.name]
        if isinstance(value, Exception):
            raise value
        if isinstance(value, Verdict):
            return Measured(comparison=compared(level.name, value, None))
        if isinstance(value, Measured):
            return value
        effect = value / self.truth[first.name]
        same = abs(effect - 1) < experiment.threshold
        verdict = Verdict.EQUIVALENT if same else Verdict.BETTER if effect > 1 else Verdict.WORSE
        return Measured(comparison=compared(level.name, verdict, effect))


def compared(name, verdict, effect, blocks=7):
    return make_compared(name, verdict, effect, cell=CELL, blocks=blocks, spread=0.01)


def question():
    experiment = make_experiment([make_environment(f"pg{name}", name) for name in SERVERS])
    key, levels = levels_along(experiment, "server")
    return SearchQuestion(experiment=experiment, factor=key, levels=levels)


def truth(*values):
    return dict(zip((f"pg{name}" for name in SERVERS), values, strict=True))


def search(folder, measure, asked=None):
    told = []
    found = Bisect(question=asked or question(), folder=folder, measure=measure, tell=told.append).search()
    return found, told


def pair(found):
    return found.levels[found.before], found.levels[found.after]


def test_the_step_is_found_with_half_of_the_difference_as_the_threshold(tmp_path):
    measure = FakeMeasure(truth(100, 100, 100, 100, 100, 90, 90, 90))
    found, told = search(tmp_path, measure)
    assert (found.outcome, pair(found), found.code) == (Outcome.FOUND, ("18", "19"), ExitCode.DONE)
    assert [name for name, _, _ in measure.asked] == ["pg21", "pg17", "pg19", "pg18"]
    assert [round(threshold, 3) for _, threshold, _ in measure.asked] == [0.03, 0.054, 0.054, 0.054]
    assert [name for _, _, name in measure.asked] == ["ends", "level-pg17", "level-pg19", "level-pg18"]
    assert told[0] == "21 against 14, threshold 3 %"


def test_a_search_has_a_page_with_every_level_that_was_compared_and_a_table_of_figures(tmp_path):
    found, _ = search(tmp_path, FakeMeasure(truth(100, 100, 100, 100, 100, 90, 90, 90)))
    document = make_search_document(found, "1")
    page = emit_page(document)
    assert document.title == "Where along server did throughput change?"
    assert "Throughput changed between 18 and 19" in page.replace("\xa0", " ")
    assert page.count('role="img"') == 1
    told = emit_markdown(document)
    assert [line.split(" |")[0] for line in told.splitlines() if line.startswith(("| 1", "| 2"))] == [
        "| 17", "| 18", "| 19", "| 21",
    ]  # fmt: skip
    rows = render_numbers(search_numbers(found)).splitlines()[1:]
    assert [row.split(",")[2] for row in rows] == ["21", "17", "19", "18"]


def test_the_page_of_a_search_says_what_could_not_be_measured_and_has_no_chart_of_nothing(tmp_path):
    found, _ = search(tmp_path, FakeMeasure(truth(*[100] * 7, Measured(comparison=None, out_of_time=True))))
    page = emit_page(make_search_document(found, "1"))
    assert "the budget is spent" in page
    assert "<svg" not in page


def test_a_search_without_time_says_so_and_measures_nothing(tmp_path):
    found, _ = search(tmp_path, FakeMeasure(truth(*[100] * 7, Measured(comparison=None, out_of_time=True))))
    assert (found.outcome, found.reason, found.ends.comparison) == (Outcome.UNDECIDED, "the budget is spent", None)
    assert "the budget is spent" in " ".join(render_bisection(found).split())
    assert json.loads(bisection_json(found))["ends"]["verdict"] is None


def test_no_study_is_begun_when_the_budget_is_spent(tmp_path):
    asked = question()
    measured = StudyMeasure(studies=StudyFolders(tmp_path), events=RecordingEvents(), budget=0.0)(
        asked.experiment, "ends"
    )
    assert measured == Measured(comparison=None, out_of_time=True)
    assert list(tmp_path.iterdir()) == []


def test_an_improvement_is_a_change_too(tmp_path):
    found, _ = search(tmp_path, FakeMeasure(truth(100, 120, 120, 120, 120, 120, 120, 120)))
    assert (found.outcome, pair(found)) == (Outcome.FOUND, ("14", "15"))


def test_ends_that_do_not_differ_end_the_search(tmp_path):
    measure = FakeMeasure(truth(*[100] * 8))
    found, _ = search(tmp_path, measure)
    assert (found.outcome, found.code, len(measure.asked)) == (Outcome.SAME, ExitCode.DONE, 1)
    assert "No change of throughput larger than 3 % between 14 and 21" in " ".join(render_bisection(found).split())
    assert json.loads(bisection_json(found))["between"] is None


def test_undecided_ends_are_said_to_be_undecided(tmp_path):
    found, _ = search(tmp_path, FakeMeasure(truth(*[100] * 7, Verdict.INCONCLUSIVE)))
    assert (found.outcome, found.code, found.steps) == (Outcome.UNDECIDED, ExitCode.UNDECIDED, ())
    assert "undecided whether" in render_bisection(found)


def test_an_undecided_step_ends_the_search_with_what_is_known(tmp_path):
    found, _ = search(tmp_path, FakeMeasure(truth(100, 100, 100, 100, 90, Verdict.UNSTABLE, 90, 90)))
    assert (found.outcome, pair(found), found.code) == (Outcome.UNDECIDED, ("17", "21"), ExitCode.UNDECIDED)
    assert "between 17 and 21" in render_bisection(found)
    document = json.loads(bisection_json(found))
    assert (document["found"], document["between"]["after"]) == (None, {"level": "21"})


def test_the_end_of_the_budget_is_told_from_a_hard_question(tmp_path):
    late = Measured(comparison=compared("pg17", Verdict.INSUFFICIENT, None, 2), out_of_time=True)
    found, _ = search(tmp_path, FakeMeasure(truth(100, 100, 100, late, 90, 90, 90, 90)))
    assert (found.outcome, found.reason) == (Outcome.UNDECIDED, "the budget is spent")
    assert "The same command goes on with --budget TIME." in render_bisection(found)


@pytest.mark.parametrize(
    "error",
    [
        ServerFailedError("it does not start"),
        LevelNotTakenError("it is not what was asked for"),
        PgstrataError("PostgreSQL cannot be built"),
    ],
)
def test_a_level_that_cannot_be_measured_is_skipped_once_and_named(tmp_path, error):
    values = truth(100, 100, 100, error, 100, 90, 90, 90)
    first = FakeMeasure(values)
    found, told = search(tmp_path, first)
    assert (found.outcome, pair(found)) == (Outcome.FOUND, ("18", "19"))
    assert any("17 cannot be measured" in line for line in told)
    assert error.what in render_bisection(found)
    again = FakeMeasure(values)
    search(tmp_path, again)
    assert "pg17" in {name for name, _, _ in first.asked}
    assert "pg17" not in {name for name, _, _ in again.asked}


def test_levels_that_cannot_be_measured_at_the_step_leave_a_range(tmp_path):
    gone = ServerFailedError("it does not start")
    found, _ = search(tmp_path, FakeMeasure(truth(100, 100, 100, gone, gone, 90, 90, 90)))
    assert (found.outcome, pair(found), found.code) == (Outcome.RANGE, ("16", "19"), ExitCode.UNDECIDED)
    document = json.loads(bisection_json(found))
    assert [one["level"] for one in document["skipped"]] == ["17", "18"]
    assert document["between"] == {"before": {"level": "16"}, "after": {"level": "19"}}


@pytest.mark.parametrize(
    "error", [HostNotFitError("the disk is full"), StudyError("the study is locked"), UsageError("a wrong path")]
)
def test_what_is_no_fault_of_a_level_ends_the_search(tmp_path, error):
    with pytest.raises(type(error)):
        search(tmp_path, FakeMeasure(truth(100, 100, 100, error, 90, 90, 90, 90)))
    assert not (tmp_path / SKIPPED_FILE).exists()


def test_an_end_that_cannot_be_measured_ends_the_search(tmp_path):
    with pytest.raises(ServerFailedError):
        search(tmp_path, FakeMeasure(truth(*[100] * 7, ServerFailedError("it does not start"))))


def test_a_damaged_list_of_skipped_levels_is_named(tmp_path):
    (tmp_path / SKIPPED_FILE).write_text("{")
    with pytest.raises(StudyError, match="skipped") as caught:
        search(tmp_path, FakeMeasure(truth(100, 100, 100, 100, 90, 90, 90, 90)))
    assert "remove the file" in caught.value.remedy


def test_only_a_level_that_collapsed_is_like_an_end_that_collapsed(tmp_path):
    gone = Verdict.COLLAPSED
    found, _ = search(tmp_path, FakeMeasure(truth(100, 100, 100, 100, 50, gone, gone, gone)))
    assert (found.outcome, pair(found)) == (Outcome.FOUND, ("18", "19"))
    assert "the change is a collapse" in " ".join(render_bisection(found).split())


def test_the_answer_is_short_lines_and_its_json_has_every_step(tmp_path):
    found, _ = search(tmp_path, FakeMeasure(truth(100, 100, 100, 100, 100, 90, 90, 90)))
    text = render_bisection(found)
    assert "changed between 18 and 19" in text
    assert "18 against 14: no difference, ±0.0 % [-1.0, +1.0], 7 blocks, like 14" in " ".join(text.split())
    assert "19 against 14: slower, -10.0 % [-11.0, -9.0], 7 blocks" in text
    document = json.loads(bisection_json(found))
    assert document["schema"] == 1
    assert document["found"] == {"before": {"level": "18"}, "after": {"level": "19"}}
    assert [(step["level"], step["like"], step["verdict"]) for step in document["steps"]] == [
        ("17", "first", "equivalent"),
        ("19", "last", "worse"),
        ("18", "first", "equivalent"),
    ]
    assert document["ends"]["interval"] == [pytest.approx(0.89), pytest.approx(0.91)]
    assert document["ends"]["study"].endswith("/ends")


def test_levels_of_a_file_are_in_its_order_and_other_factors_stay_at_the_baseline(tmp_path):
    file = tmp_path / "question.toml"
    file.write_text(FILE)
    asked = ask_factor(file, "options.extra_work")
    assert [asked.name(place) for place in range(4)] == ["0", "1", "50000", "50001"]
    assert {level.server.text for level in asked.levels} == {"16"}
    with pytest.raises(UsageError, match="server has 2 levels"):
        ask_factor(file, "server")


def test_one_question_has_one_folder_and_another_has_another(tmp_path):
    file, asked = tmp_path / "question.toml", question()
    folder = search_folder(file, asked)
    assert search_folder(file, asked) == folder
    assert folder.name.startswith("bisect-question-")
    assert search_folder(file, replace(asked, levels=asked.levels[1:])) != folder
    cheaper = replace(asked, experiment=replace(asked.experiment, budget=5.0))
    assert search_folder(file, cheaper) == folder


def test_a_folder_keeps_to_its_search(tmp_path, monkeypatch):
    monkeypatch.setattr(bisect, "Bisect", lambda **_: SimpleNamespace(search=lambda: "searched"))
    events = RecordingEvents()
    for _ in range(2):
        assert bisect.carry_out(question(), tmp_path / "s", events, budget=None) == "searched"
    shorter = replace(question(), levels=question().levels[:-1])
    with pytest.raises(StudyError, match="holds another search"):
        bisect.carry_out(shorter, tmp_path / "s", events, budget=None)
