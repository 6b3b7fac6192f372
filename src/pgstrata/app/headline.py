"""The headline of a study in a few words: by the primary metric alone, so that it is soon there."""

from __future__ import annotations

from pathlib import Path

from pgstrata.compare import compare_study
from pgstrata.compare.progress import open_pairs
from pgstrata.model.answer import Answer
from pgstrata.model.metrics import COMPARED_SERIES, ROUND_TPS
from pgstrata.model.study import Study
from pgstrata.report.commands.listing import say_headline
from pgstrata.store.load import load_study


def decide_headline(folder: Path) -> tuple[str, bool]:
    """The headline, and whether nothing is left to be measured; StudyError where the study is damaged."""
    study = load_study(folder, metrics=(ROUND_TPS,), series=COMPARED_SERIES)
    answer = Answer(study=study, comparisons=compare_study(study.plan, study.runs), warnings=())
    return say_headline(answer), _is_finished(study)


def _is_finished(study: Study) -> bool:
    """Whether the last block has all that it had to hold, and none has to follow."""
    last = max((run.block for run in study.runs), default=0)
    there = {(run.environment, run.cell) for run in study.runs if run.block == last}
    if not open_pairs(study.plan, study.runs, last) <= there:
        return False
    return last >= len(study.plan.blocks) or not open_pairs(study.plan, study.runs, last + 1)
