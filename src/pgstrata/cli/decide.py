"""`pgstrata decide`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from pgstrata.app.decide import decide_file
from pgstrata.cli.ending import end_with
from pgstrata.compare.foreign import ForeignQuestion
from pgstrata.compare.gate import gate_code
from pgstrata.report.decide import decision_json, render_decision


def decide_and_end(
    file: Path,
    *,
    baseline: str | None,
    threshold: float | None,
    lower_is_better: bool,
    metric: str | None,
    ordered: bool,
    json: bool,
) -> NoReturn:
    """Print the answer; the exit code is that of a gate, by the headlines alone."""
    question = ForeignQuestion(baseline=baseline, metric=metric, lower_is_better=lower_is_better, ordered=ordered)
    if threshold is not None:
        question = replace(question, threshold=threshold)
    answer = decide_file(file, question)
    code = gate_code(finding.comparison.verdict for finding in answer.headlines)
    end_with(decision_json(answer) if json else render_decision(answer), code)
