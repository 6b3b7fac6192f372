"""Writes the report on other tools' results as one HTML file."""

from __future__ import annotations

from pathlib import Path

from pgstrata.app.report import write_page
from pgstrata.compare.one_look import ImportAnswer
from pgstrata.report.commands.decision_page import make_decision_document


def write_decision(answer: ImportAnswer, target: Path) -> Path:
    """Write the report and return its path; PgstrataError if it cannot be written."""
    return write_page(make_decision_document(answer), target, option="--report")
