"""`pgstrata list | open`: studies, bundles and archives found again."""

import getpass
import os
import platform
import shlex
import sys
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Final

import typer

from pgstrata.cli.completion import complete_any
from pgstrata.cli.options import Json

_WIDEST: Final = 120
_NO_TERMINAL: Final = 78


def list_(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to look; default: the current folder.")
    ] = Path(),
    json: Json = False,
    decide: Annotated[
        bool, typer.Option("--decide", help="Compute all answers, not only as many as two seconds allow.")
    ] = False,
) -> None:
    """List studies, bundles and archives.

    The newest come first. It looks up to four folders below, and follows no links. If one is damaged, it gives the
    reason.
    """
    from pgstrata.app.listing import DECIDING_SECONDS, list_below
    from pgstrata.report.commands.listing import listing_json, render_listing

    found = list_below(folder, seconds=None if decide else DECIDING_SECONDS)
    columns = min(_WIDEST, get_terminal_size().columns) if sys.stdout.isatty() else _NO_TERMINAL
    print(listing_json(found) if json else render_listing(found, columns), end="")


def open_(
    study: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY", help="A study, a merged study, a bundle or an archive.", autocompletion=complete_any
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.html", help="Where the report goes.")
    ] = None,
) -> None:
    """Write the report and open it in your browser.

    BROWSER names another one. Without a display it says where the report is, over ssh also how to fetch it. The report
    of a study goes into its folder, others into a private folder of the cache.
    """
    from pgstrata.app.open_report import show_page, write_shown

    written = write_shown(study, output)
    print(f"report: {written}", flush=True)
    why = show_page(written)
    if not why:
        return
    print(f"not opened: {why}", file=sys.stderr)
    if os.environ.get("SSH_CONNECTION"):
        source = f"{getpass.getuser()}@{platform.node()}:{written.absolute()}"
        print(f"fetch it on your own machine: scp {shlex.quote(source)} .", file=sys.stderr)
