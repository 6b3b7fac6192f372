"""Documents printed: in colour and tables for a terminal, otherwise as text or Markdown; or written into files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgstrata.cli.completion import complete_words

if TYPE_CHECKING:
    from pgstrata.report.blocks.model import Document
    from pgstrata.report.blocks.terminal import Extent

TEXT, MARKDOWN, CSV = "text", "markdown", "csv"
Charts = Annotated[
    Path | None,
    typer.Option("--charts", metavar="FOLDER", help="Also write each chart into this new folder, as SVG and as PNG."),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="'text': plain, at most 78 columns; 'markdown' or 'md'.",
        autocompletion=complete_words(TEXT, MARKDOWN),
    ),
]
FormatOrNumbers = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="'text': plain, at most 78 columns; 'markdown' or 'md'; 'csv': every figure.",
        autocompletion=complete_words(TEXT, MARKDOWN, CSV),
    ),
]


def choose_format(format_: str | None, *more: str) -> str | None:
    """`text`, `markdown` or one of `more`; None where nothing was asked for. UsageError where it is none of them."""
    known = (TEXT, MARKDOWN, *more)
    found = MARKDOWN if format_ == "md" else format_
    if found is not None and found not in known:
        from pgstrata.errors import UsageError

        formats = ", ".join(f"--format {each}" for each in known)
        raise UsageError(f"{format_!r} is not a valid format", where="--format", remedy=f"use {formats}, or --json")
    return found


def print_document(document: Document, format_: str | None, extent: Extent | None = None) -> None:
    """Print it as `text` or `markdown`; where nothing is asked for, as suits standard output.

    `extent` is how much a terminal shows, None for the usual; other forms are always whole.
    """
    if format_ is None and sys.stdout.isatty():
        from rich.console import Console

        from pgstrata.report.blocks.terminal import Extent, emit_terminal

        console = Console()
        console.print(emit_terminal(document, console.width, extent or Extent.TABLES))
    elif format_ == MARKDOWN:
        from pgstrata.report.blocks.markdown import emit_markdown

        print(emit_markdown(document))
    else:
        from pgstrata.report.blocks.text import emit_text

        print(emit_text(document))


def write_files(document: Document, report: Path | None, charts: Path | None, *, private: bool = False) -> None:
    """Write a page and charts where they are asked for, and say so on standard error."""
    if charts is not None:
        from pgstrata.app.charts import write_charts

        print(f"charts: {charts} ({write_charts(document, charts)})", file=sys.stderr)
    if report is not None:
        from pgstrata.app.report import write_page

        print(f"report: {write_page(document, report, option='--report', private=private)}", file=sys.stderr)
