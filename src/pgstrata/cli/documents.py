"""Documents printed: in colour and tables for a terminal, otherwise as text or Markdown."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pgstrata.report.blocks.model import Document
    from pgstrata.report.blocks.terminal import Extent


def print_document(document: Document, format_: str | None, extent: Extent | None = None) -> None:
    """Print it as `text` or `markdown`; where nothing is asked for, as suits standard output.

    `extent` is how much a terminal shows, None for the usual; other forms are always whole.
    """
    if format_ is None and sys.stdout.isatty():
        from rich.console import Console

        from pgstrata.report.blocks.terminal import Extent, emit_terminal

        console = Console()
        console.print(emit_terminal(document, console.width, extent or Extent.TABLES))
    elif format_ == "markdown":
        from pgstrata.report.blocks.markdown import emit_markdown

        print(emit_markdown(document))
    else:
        from pgstrata.report.blocks.text import emit_text

        print(emit_text(document))
