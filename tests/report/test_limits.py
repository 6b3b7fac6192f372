from __future__ import annotations

import dataclasses

from pgstrata.model.experiment import Interleave
from pgstrata.model.server import Fingerprint
from pgstrata.report.limits import unmeasured


def test_a_planned_number_of_blocks_that_was_not_reached_is_said(desk):
    answer = desk.answer(blocks=3)
    runs = tuple(run for run in answer.study.runs if run.block < 3)
    short = dataclasses.replace(answer, study=dataclasses.replace(answer.study, runs=runs))
    assert any("after 2 of 3 planned blocks, which is earlier than planned" in text for text in unmeasured(short))


def test_a_fixed_rate_is_no_closed_loop(desk):
    cell = dataclasses.replace(desk.cell(), rate=100.0)
    assert not any("Closed loop" in text for text in unmeasured(desk.answer(cells=(cell,), blocks=1)))
    mixed = unmeasured(desk.answer(cells=(cell, desk.cell()), blocks=1))
    assert any("Closed loop in the cells without a rate" in text for text in mixed)


def test_runs_shorter_than_a_checkpoint_cycle_say_so(desk):
    answer = desk.answer(blocks=1)
    for timeout, expected in (("900", True), ("30", False), ("", False)):
        fingerprint = Fingerprint(facts={"settings.checkpoint_timeout": timeout})
        study = dataclasses.replace(answer.study, environments={"pg16": fingerprint})
        texts = unmeasured(dataclasses.replace(answer, study=study))
        assert any("checkpoint_timeout of 15 min" in text for text in texts) is expected


def test_slices_are_not_run_by_run(desk):
    answer = desk.answer(blocks=1)
    plan = dataclasses.replace(answer.study.plan, interleave=Interleave.SLICES)
    sliced = dataclasses.replace(answer, study=dataclasses.replace(answer.study, plan=plan))
    assert not any("Run by run" in text for text in unmeasured(sliced))


def test_one_comparison_needs_no_correction(desk):
    assert not any("No correction" in text for text in unmeasured(desk.verdict_answer(desk.comparison())))
