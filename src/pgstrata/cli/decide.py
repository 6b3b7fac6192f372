"""`pgstrata decide`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from pgstrata.app.decide import decide_file
from pgstrata.cli.ending import end_with
from pgstrata.compare.gate import gate_code
from pgstrata.compare.one_look import ImportTerms
from pgstrata.report.commands.decide import decision_json, render_decision


def decide_and_end(
    file: Path,
    *,
    baseline: str | None,
    threshold: float | None,
    lower_is_better: bool,
    metric: str | None,
    ordered: bool,
    sequential: bool,
    json: bool,
) -> NoReturn:
    """Print the answer; the exit code is that of a gate, by the headlines alone."""
    terms = ImportTerms(
        baseline=baseline, metric=metric, lower_is_better=lower_is_better, ordered=ordered, sequential=sequential
    )
    if threshold is not None:
        terms = replace(terms, threshold=threshold)
    answer = decide_file(file, terms)
    code = gate_code(item.verdict for item in answer.headlines)
    end_with(decision_json(answer) if json else render_decision(answer), code)
