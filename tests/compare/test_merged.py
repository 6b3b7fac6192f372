"""Merged studies: what makes parts unlike, and what an answer about all of them must not leave unsaid."""

from dataclasses import replace

import pytest

from pgstrata.compare.merged import find_unlike, merge_parts, merged_code
from pgstrata.errors import ExitCode
from pgstrata.model.answer import Verdict
from pgstrata.model.doubts import CountedDoubt
from pgstrata.model.experiment import ControlKind, Script, ServerKind, ServerSpec
from pgstrata.model.merged import HOST, MergedPart, PartComparison, PartDoubt
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study
from pgstrata.report.answer.merged import make_merged_document, merged_json, say_limits, say_merged
from studies import BASE, OTHER, make_environment, make_plan, simulate

CONTROL = "pg16-control"


def make_part(name, *, environments=None, facts=None, cells=None):
    plan = make_plan(environments)
    if cells is not None:
        plan = replace(plan, experiment=replace(plan.experiment, cells=cells))
    runs = simulate(plan, sd=0.003, seed=len(name))
    observed = facts or {}
    study = Study(
        name=name,
        plan=plan,
        runs=tuple(replace(run, started=name) for run in runs),
        host=Fingerprint(facts={}),
        client=Fingerprint(facts={}),
        environments={each: Fingerprint(facts=known) for each, known in observed.items()},
        created="",
        version="",
    )
    return MergedPart(name=name, study=study, kind="")


def merge(*parts):
    return merge_parts("all", HOST, parts)


def doubts_of(answer):
    return {(about.part, about.doubt.code) for about in answer.warnings}


def test_environments_that_are_equal_in_several_parts_are_claims_that_nobody_corrected():
    answer = merge(make_part("a"), make_part("bb"))
    assert {item.comparison.verdict for item in answer.comparisons} == {Verdict.EQUIVALENT}
    doubt = CountedDoubt(code="equivalences_uncorrected", number=2, of=2)
    assert answer.warnings == (PartDoubt(part="", doubt=doubt),)
    assert '"no difference" is claimed 2 times' in make_merged_document(answer).doubts[0].text
    assert '"part": null' in merged_json(answer)


def test_running_servers_are_these_instances_in_each_part():
    servers = [ServerSpec(kind=ServerKind.DSN, value=value) for value in ("staging", "candidate")]
    names = (BASE, OTHER)
    running = tuple(replace(make_environment(name), server=server) for name, server in zip(names, servers, strict=True))
    answer = merge(*(make_part(name, environments=running) for name in ("a", "bb", "ccc")))
    assert {(name, "these_instances") for name in ("a", "bb", "ccc")} <= doubts_of(answer)
    texts = [remark.text for remark in make_merged_document(answer).doubts]
    assert len([text for text in texts if "a, bb, ccc: the answer is about running instances" in text]) == 1


def test_a_cell_behind_a_baseline_that_is_called_on_follows_a_comma():
    levels = zip((BASE, OTHER), ("on", "off"), strict=True)
    jit = tuple(make_environment(name, levels={"settings.jit": value}) for name, value in levels)
    (said,) = say_merged(merge(make_part("a", environments=jit), make_part("bb", environments=jit)))
    assert said.startswith("jit = off against jit = on, on simple-update: ")


def test_what_the_experiment_does_not_explain_is_told_of_its_part():
    facts = {BASE: {"host.kernel": "6.1"}, OTHER: {"host.kernel": "6.12"}}
    assert ("bb", "undeclared_difference") in doubts_of(merge(make_part("a"), make_part("bb", facts=facts)))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"server": ServerSpec(kind=ServerKind.CATALOGUE, value="17")}, "server"),
        ({"settings": {"work_mem": "8MB"}}, "work_mem"),
        ({"options": {"extra_work": "1000"}}, "options.extra_work"),
        ({"initdb": {"encoding": "UTF8"}}, "initdb.encoding"),
        ({"layers": {"pages": "2MB"}}, "pages"),
    ],
)
def test_what_environments_of_one_name_do_not_have_in_common_is_named(change, name):
    other = (make_environment(BASE), replace(make_environment(OTHER, "18"), **change))
    answer = merge(make_part("a"), make_part("bb", environments=other))
    assert answer.unlike == (name,)
    assert any(f"their effect is in every difference between parts: {name}" in text for text in say_limits(answer))


def test_another_length_of_runs_is_named():
    first = make_part("a")
    (cell,) = first.study.plan.experiment.cells
    assert merge(first, make_part("bb", cells=(replace(cell, run=5.0),))).unlike == (f"run ({cell.identity})",)


@pytest.mark.parametrize(
    "change",
    [{"scripts": (Script(file="a.sql", text="SELECT 2;"),)}, {"options": {"access": "pareto"}}, {"driver": "sysbench"}],
)
def test_cells_of_one_name_with_other_transactions_cannot_be_merged(change):
    first = make_part("a")
    (cell,) = first.study.plan.experiment.cells
    assert find_unlike((first, make_part("bb"))) is None
    unlike = find_unlike((first, make_part("bb", cells=(replace(cell, **change),))))
    assert unlike is not None
    assert (unlike.other, unlike.what) == ("bb", "cells")


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (Verdict.EQUIVALENT, ExitCode.DONE),
        (Verdict.BETTER, ExitCode.UNDECIDED),
        (Verdict.UNSTABLE, ExitCode.UNDECIDED),
        (Verdict.COLLAPSED, ExitCode.UNDECIDED),
    ],
)
def test_a_gate_does_not_pass_beside_a_control_that_is_not_what_its_original_is(verdict, code):
    environments = (
        make_environment(BASE),
        make_environment(OTHER, "18"),
        make_environment(CONTROL, control=ControlKind.SAME),
    )
    answer = merge(make_part("a", environments=environments), make_part("bb", environments=environments))
    comparisons = tuple(
        PartComparison(part=item.part, comparison=replace(item.comparison, verdict=verdict))
        if item.comparison.control
        else item
        for item in answer.comparisons
    )
    assert merged_code(replace(answer, comparisons=comparisons)) is code
