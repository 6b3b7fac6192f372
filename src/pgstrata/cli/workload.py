"""`pgstrata workload draft`."""

from pathlib import Path
from typing import Annotated

import typer

workload_app = typer.Typer(help="Draft workloads of your own.", no_args_is_help=True, rich_markup_mode=None)


@workload_app.callback()
def _workload() -> None:
    """Keep `draft` a command of its own, though it is the only one."""


@workload_app.command("draft")
def workload_draft(
    dsn: Annotated[
        str, typer.Argument(metavar="DSN", help="A running server: SERVICE, postgresql://… or host=… dbname=….")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="A new folder; default draft-DATABASE.")
    ] = None,
    top: Annotated[int, typer.Option("--top", metavar="N", help="Maximum number of scripts.")] = 10,
) -> None:
    """Draft a workload from a running server.

    It makes scripts with weights from pg_stat_statements, and an experiment file. It only reads there. Variables get
    ranges from statistics of columns; the ends of these ranges are values of rows. Where a person must look, a script
    says so, and `pgstrata plan` names the line.
    """
    from pgstrata.app.draft import draft_workload
    from pgstrata.report.commands.draft import render_draft

    folder, draft = draft_workload(dsn, output, top)
    print(render_draft(draft, str(folder)))
