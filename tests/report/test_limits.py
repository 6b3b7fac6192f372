from __future__ import annotations

import dataclasses

from pgstrata.model.answer import Verdict
from pgstrata.model.metrics import ROUND_TPS, Series
from pgstrata.model.runs import Validity
from pgstrata.model.server import Fingerprint
from pgstrata.report.answer.notes import say_values
from pgstrata.report.sentences.limits import unmeasured


def joined(answer):
    return "\n".join(unmeasured(answer))


def test_what_is_undecided_before_the_end_may_still_be_decided(desk):
    answer = desk.answer(blocks=3)
    runs = tuple(run for run in answer.study.runs if run.block < 3)
    open_ended = tuple(dataclasses.replace(item, decided_at=None) for item in answer.comparisons)
    study = dataclasses.replace(answer.study, runs=runs)
    assert "After 2 of 3 planned blocks" in joined(dataclasses.replace(answer, study=study, comparisons=open_ended))
    assert "planned blocks" not in joined(dataclasses.replace(answer, study=study))


def test_a_fixed_rate_is_no_closed_loop(desk):
    cell = dataclasses.replace(desk.cell(), rate=100.0)
    assert "Closed loop" not in joined(desk.answer(cells=(cell,), blocks=1))
    assert "Closed loop in the cells without a rate" in joined(desk.answer(cells=(cell, desk.cell()), blocks=1))


def test_runs_shorter_than_a_checkpoint_cycle_say_so(desk):
    answer = desk.answer(blocks=1)
    for timeout, expected in (("900", True), ("30", False), ("", False)):
        fingerprint = Fingerprint(facts={"settings.checkpoint_timeout": timeout})
        study = dataclasses.replace(answer.study, environments={"pg16": fingerprint})
        text = joined(dataclasses.replace(answer, study=study))
        assert ("checkpoint_timeout of 15 min" in text) is expected


def test_slices_have_limits_of_their_own(desk):
    text = joined(desk.slices(desk.answer(blocks=1)))
    assert "Run by run" not in text
    for expected in ("last-level cache", "in flight", "Slices of 250 ms carry the start effects", "without that log"):
        assert expected in text
    assert "start effects" not in joined(desk.slices(desk.answer(blocks=1), seconds=2.0))


def test_the_visits_with_a_stretch_are_named_where_not_all_have_one(desk):
    answer = desk.slices(desk.answer(blocks=1))
    assert "from a stretch of each visit without that log" in joined(answer)
    plan = answer.study.plan
    designs = tuple(dataclasses.replace(design, stretched=6) for design in plan.designs)
    study = dataclasses.replace(answer.study, plan=dataclasses.replace(plan, designs=designs))
    answer = dataclasses.replace(answer, study=study)
    assert "from a stretch of each of the first 6 visits without that log" in joined(answer)
    text = say_values(study.plan, plan.experiment.cells[0])
    assert text == "median of unlogged stretches in the first 6 blocks; differences come from the slices"


def test_what_the_log_and_taking_turns_cost_is_a_figure_of_the_study(desk):
    answer = desk.slices(desk.answer(cells=(desk.cell(),), blocks=2))
    shares = (0.90, 0.94, 0.94, 0.96, 0.96, 1.02, 0.95, 0.95)
    runs = [
        dataclasses.replace(
            run,
            validity=Validity.VALID,
            series=(Series(metric=ROUND_TPS, times=(0.0, 1.0, 2.0), values=(1.0, share * run.value("tps"), 1e9)),),
        )
        for run, share in zip(answer.study.runs, shares, strict=True)
    ]

    def text(runs):
        return joined(dataclasses.replace(answer, study=dataclasses.replace(answer.study, runs=tuple(runs))))

    assert "of the stretch by -5.0 % (median of 8 runs, half of them from -6.0 to -4.0 %): what the log" in text(runs)
    assert "of the stretch by" not in text(runs[:5])
    spoilt = [dataclasses.replace(run, validity=Validity.INVALID) for run in runs[:3]]
    assert "of the stretch by" not in text([*spoilt, *runs[3:]])


def test_each_cell_has_a_cost_of_its_own(desk):
    text = joined(desk.slices(desk.answer(blocks=3)))
    assert "(simple-update, median of " in text
    assert "(select-only, median of " in text


def test_where_cells_differ_in_design_each_limit_names_its_cells(desk):
    answer = desk.slices(desk.answer(blocks=1))
    plan = answer.study.plan
    mixed = dataclasses.replace(plan, designs=plan.designs[:1])
    text = joined(dataclasses.replace(answer, study=dataclasses.replace(answer.study, plan=mixed)))
    assert "Run by run (select-only)" in text
    assert "In slices (simple-update)" in text


def test_slices_that_write_are_not_shown_to_agree_with_whole_runs(desk):
    answer = desk.slices(desk.answer(blocks=1))
    plan = answer.study.plan
    designs = tuple(dataclasses.replace(each, settle="update" in each.cell) for each in plan.designs)
    writing = dataclasses.replace(
        answer, study=dataclasses.replace(answer.study, plan=dataclasses.replace(plan, designs=designs))
    )
    assert (
        "Slices of workloads that write (simple-update): nothing shows yet that they agree with whole runs"
        in joined(writing)
    )
    assert "Slices of workloads that write" not in joined(answer)


def test_headlines_are_corrected_and_single_cells_are_exploratory(desk):
    text = joined(desk.headlines(desk.answer()))
    assert "The 2 headlines are corrected for their number (Holm)" in text
    assert "Single cells are exploratory, each judged alone. If nothing differed in any of the 4, up to 0.2" in text


def test_one_comparison_needs_no_correction(desk):
    text = joined(desk.verdict_answer(desk.comparison()))
    assert "up to 4.5 % of such headlines come out different" in text
    assert "Holm" not in text
    assert "exploratory" not in text


def test_early_endings_are_said_where_there_is_one(desk):
    text = joined(desk.verdict_answer(desk.comparison(verdict=Verdict.INCONCLUSIVE)))
    assert "ended at its verdict" not in text
    assert "ended at its verdict" in joined(desk.verdict_answer(desk.comparison()))


def test_a_missing_floor_is_said(desk):
    answer = desk.verdict_answer(desk.comparison())
    assert "No noise floor is known" in joined(answer)
    assert "No noise floor is known" not in joined(desk.floors(answer, desk.floor("simple-update-s10-c2")))
