"""Whatever a study lacks, it is shown in every form, or refused with a remedy: nothing real ends in a traceback."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holed import Stored, holed_studies
from pgstrata.app import explain_study, export, headline
from pgstrata.app.answer import load_answer
from pgstrata.app.gate import load_gate
from pgstrata.app.report import load_stacks
from pgstrata.compare.merged import find_unlike, merge_parts, merged_code
from pgstrata.compare.noise.floors import control_differences
from pgstrata.compare.progress import look_at
from pgstrata.model.merged import HOST, MergedPart
from pgstrata.model.metrics import METRICS
from pgstrata.report.answer.causes import make_why_document
from pgstrata.report.answer.document import make_document
from pgstrata.report.answer.merged import make_merged_document, merged_json
from pgstrata.report.blocks.text import emit_text
from pgstrata.report.commands.gate import gate_json, render_gate
from pgstrata.report.json.answer import answer_json
from pgstrata.report.live.document import make_explanation
from pgstrata.report.live.json import explanation_json
from rendering import attempt, plain_charts, show_everywhere


@pytest.fixture(scope="module", autouse=True)
def no_drawing():
    with plain_charts():
        yield


def show_answer(stored):
    """The answer with everything that it can be asked for."""
    answer = load_answer(stored, series=True, shifts=True, pairs=True, why=True)
    show_everywhere(make_document(replace(answer, stacks=load_stacks(stored, answer.study))))
    show_everywhere(make_why_document(answer), page=False)
    assert json.loads(answer_json(answer, why=True))
    assert emit_text(make_document(load_answer(stored, query_text=False)))


def show_gate(stored, metric):
    gate = attempt(lambda: load_gate(stored, metric=metric, threshold=0.05 if metric else None))
    if gate is not None:
        assert render_gate(gate)
        assert json.loads(gate_json(gate))


def show_merged(study):
    """With the same at another time, and with a part in which nothing was measured."""
    later = replace(study, runs=tuple(replace(run, started=f"2027{run.started[4:]}") for run in study.runs))
    parts = [
        MergedPart(name=name, study=part, kind=kind)
        for name, part, kind in (("a", study, "big"), ("b", later, "big"), ("c", replace(study, runs=()), ""))
    ]
    if find_unlike(parts) is None:
        answer = merge_parts("merged", HOST, parts)
        show_everywhere(make_merged_document(answer))
        assert json.loads(merged_json(answer))
        assert merged_code(answer) is not None


def explain(stored, patch):
    """The last environment against the baseline, in each cell."""
    patch.setattr(explain_study, "open_study", lambda _: nullcontext(stored))
    experiment = stored.study.plan.experiment
    for cell in experiment.cells[:2]:
        asked = Path("s"), experiment.environments[-1].name, None, cell.identity
        found = attempt(partial(explain_study.explain_study, *asked))
        if found is not None:
            show_everywhere(make_explanation(found, "0.1.0"))
            assert json.loads(explanation_json(found))


def export_all(stored, patch, folder):
    patch.setattr(export, "StudyFolder", lambda _: stored)
    for form in ("csv", "otava"):
        attempt(partial(export.export_results, folder, form, folder / f"{form}.csv"))


def go_on(stored, patch):
    """What a run looks at between its blocks and after them."""
    patch.setattr(headline, "load_study", lambda _, **asked: stored.load(**asked))
    study = stored.study
    for number in range(1, len(study.plan.blocks) + 2):
        look_at(study.plan, study.runs, number)
    assert headline.decide_headline(Path("s"))[0]
    control_differences(study.plan, study.runs, ("tps", "latency_p95"))


def check(study, metric=None):
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        stored = Stored.keep(study, Path(folder))
        show_answer(stored)
        show_gate(stored, None)
        show_gate(stored, metric)
        show_merged(stored.load(metrics=(), series=("round_tps", "tps")))
        explain(stored, patch)
        export_all(stored, patch, Path(folder))
        go_on(stored, patch)


@settings(max_examples=5)
@given(holed_studies(), st.sampled_from(sorted(METRICS)))
def test_any_study_with_holes_is_shown_in_every_form(holed, metric):
    check(holed.make(), metric)
