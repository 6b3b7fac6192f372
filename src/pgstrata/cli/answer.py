"""`pgstrata show`."""

from __future__ import annotations

import sys
from pathlib import Path

from pgstrata.app.answer import load_answer
from pgstrata.errors import UsageError
from pgstrata.store.repository import StudyFolder


def show_answer(
    study: Path, *, json: bool, form: str | None, pairs: bool, why: bool = False, query_text: bool = True
) -> None:
    """Print the answer: JSON, text of at most 78 columns, Markdown, or tables on a terminal; `pairs`: all of them too.

    With `why` only what the differences come from, as text or Markdown, or all of it as JSON. Without `query_text`
    hashes stand for texts of queries.
    """
    if form not in {None, "text", "markdown"}:
        remedy = "use --format text, --format markdown, or --json"
        raise UsageError(f"{form!r} is not a valid format", where="--format", remedy=remedy)
    if why and pairs and not json:
        raise UsageError(
            "--why and --pairs are two texts", where="--why", remedy="ask for one of them, or for both with --json"
        )
    answer = load_answer(StudyFolder(study), shifts=json, pairs=pairs, why=why, query_text=query_text)
    if json:
        from pgstrata.report.json.answer import answer_json

        print(answer_json(answer, why=why))
    elif why or form or not sys.stdout.isatty():
        from pgstrata.report.answer.causes import make_why_document
        from pgstrata.report.answer.document import make_document
        from pgstrata.report.blocks.markdown import emit_markdown
        from pgstrata.report.blocks.text import emit_text

        emit = emit_markdown if form == "markdown" else emit_text
        print(emit(make_why_document(answer) if why else make_document(answer)))
    else:
        from rich.console import Console

        from pgstrata.report.answer.document import make_document
        from pgstrata.report.blocks.terminal import emit_terminal

        console = Console()
        console.print(emit_terminal(make_document(answer), console.width))
