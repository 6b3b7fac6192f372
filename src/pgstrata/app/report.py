"""Write the report of a study as one HTML file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pgstrata.app.answer import load_answer
from pgstrata.app.stacks import load_stacks
from pgstrata.errors import DiskFullError, PgstrataError
from pgstrata.ports.studies import StoredStudy
from pgstrata.report.answer.document import make_document
from pgstrata.report.blocks.page import emit_page
from pgstrata.system.files import is_full, write_beside


def write_report(study: StoredStudy, target: Path, *, pairs: bool, query_text: bool = True) -> Path:
    """The file that was written. PgstrataError where it cannot be."""
    answer = load_answer(study, series=True, shifts=True, pairs=pairs, why=True, query_text=query_text)
    text = emit_page(make_document(replace(answer, stacks=load_stacks(study, answer.study))))
    try:
        write_beside(target, text.encode())
    except OSError as error:
        kind = DiskFullError if is_full(error) else PgstrataError
        raise kind(
            f"the report cannot be written: {error.strerror}", where=str(target), remedy="give another place with -o"
        ) from None
    return target
