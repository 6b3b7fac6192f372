"""`pgstrata gate`."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from pgstrata.app.gate import load_gate
from pgstrata.cli.ending import end_with
from pgstrata.report.commands.gate import gate_json, render_gate
from pgstrata.store.repository import StudyFolder


def gate_and_end(study: Path, *, metric: str | None, threshold: float | None, json: bool) -> NoReturn:
    """Print the headlines and why; the exit code says whether the study passes."""
    gate = load_gate(StudyFolder(study), metric=metric, threshold=threshold)
    end_with(gate_json(gate) if json else render_gate(gate), gate.code)
