"""What samplers did not see is said of the study, wherever it is shown; the runs stay."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from pgstrata.compare import compare_study
from pgstrata.compare.environments.unobserved import unseen_warnings
from pgstrata.model.answer import Answer
from pgstrata.model.reasons import Reason
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study
from pgstrata.report.json.answer import answer_json
from rendering import render_html, render_terminal, render_text, render_why
from studies import BASE, OTHER, make_plan, make_runs, noisy

HOSTILE = "<b onclick=x>[red]gone[/red] & done"


def make_study(reasons):
    """Reasons by environment and block, in a study of four blocks."""
    runs = [*make_runs(BASE, noisy(1000, 4)), *make_runs(OTHER, noisy(1010, 4, 1))]
    runs = [replace(run, reasons=reasons.get((run.environment, run.block), ())) for run in runs]
    nothing = Fingerprint(facts={})
    return Study(
        name="s",
        plan=make_plan(blocks=4),
        runs=tuple(runs),
        host=nothing,
        client=nothing,
        environments={},
        created="",
        version="0",
    )


def lost(said="Killed"):
    return (Reason(code="sampler_lost", names=("seconds",), how="ended", said=said),)


def missing(share):
    return (Reason(code="samples_missing", how="sessions", value=share / 100),)


def test_alike_remarks_of_an_environment_are_one_warning_with_the_first_run():
    study = make_study({(OTHER, 1): missing(31), (OTHER, 3): missing(45), (BASE, 2): lost()})
    one, other = unseen_warnings(study)
    assert (one.code, one.environment, one.number, one.of) == ("sampler_lost", "pg16", 1, 4)
    assert ((one.reason,), one.first) == (lost(), "b02/pg16/simple-update-s10-c4")
    assert (other.code, other.environment, other.number, other.of) == ("samples_missing", "pg18", 2, 4)
    assert ((other.reason,), other.first) == (missing(31), "b01/pg18/simple-update-s10-c4")


def test_other_reasons_are_none_of_it():
    study = make_study({(OTHER, 1): (Reason(code="foreign_cpu", value=1.5),)})
    assert unseen_warnings(study) == ()


def test_of_very_many_the_rest_is_counted():
    words = ("one", "two", "three", "four")
    reasons = {(name, block): lost(f"gone {words[block - 1]}") for name in (BASE, OTHER) for block in range(1, 5)}
    warnings = unseen_warnings(make_study(reasons))
    assert len(warnings) == 7
    assert [doubt.kinds for doubt in warnings] == [0, 0, 0, 0, 0, 0, 2]


@pytest.fixture(scope="module")
def answer():
    study = make_study({(OTHER, 2): lost(HOSTILE)})
    comparisons = compare_study(study.plan, study.runs)
    return Answer(study=study, comparisons=comparisons, warnings=unseen_warnings(study))


def test_every_form_of_the_answer_says_it(answer):
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_terminal(answer, console.width))
    for text in (render_text(answer), render_why(answer), answer_json(answer), console.export_text()):
        assert "in 1 of 4 runs the sampler seconds ended before the run did" in " ".join(text.split())
        assert "[red]gone[/red] &" in text or "[red]gone[/red] \\u0026" in text


def test_words_of_a_sampler_are_escaped_in_the_report(answer):
    html = render_html(answer)
    assert "in 1 of 4 runs the sampler seconds ended before the run did" in html
    assert "<b onclick" not in html
    assert "&lt;b onclick" in html
