"""`pgstrata list | open`: studies, bundles and archives found again."""

import sys
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Final

import typer

from pgstrata.cli.options import Json

_WIDEST: Final = 120
_NO_TERMINAL: Final = 78


def list_(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to look; default: the current folder.")
    ] = Path(),
    json: Json = False,
    decide: Annotated[
        bool, typer.Option("--decide", help="Look for all headlines, not only as many as take two seconds.")
    ] = False,
) -> None:
    """List studies, bundles and archives of live servers, the newest first.

    It looks up to four folders below and follows no links. Of damaged ones it gives the reason.
    """
    from pgstrata.app.listing import DECIDING_SECONDS, list_below
    from pgstrata.report.commands.listing import listing_json, render_listing

    found = list_below(folder, seconds=None if decide else DECIDING_SECONDS)
    columns = min(_WIDEST, get_terminal_size().columns) if sys.stdout.isatty() else _NO_TERMINAL
    print(listing_json(found) if json else render_listing(found, columns), end="")
