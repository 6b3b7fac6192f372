"""`pgstrata doctor`."""

from __future__ import annotations

import sys

from pgstrata.app.doctor import examine_here
from pgstrata.app.remote_doctor import examine_there
from pgstrata.errors import ExitCode


def examine_and_tell(destination: str | None, *, json: bool) -> None:
    """Print what was found; exit code 4 where nothing can be measured at all."""
    if sys.stderr.isatty():
        print(f"examining {destination or 'this host'}: about ten seconds", file=sys.stderr)
    examination = examine_here() if destination is None else examine_there(destination)
    if json:
        from pgstrata.report.commands.doctor import doctor_json

        print(doctor_json(examination))
    elif sys.stdout.isatty():
        from rich.console import Console

        from pgstrata.report.commands.doctor import render_terminal

        console = Console()
        console.print(render_terminal(examination, console.width))
    else:
        from pgstrata.report.commands.doctor import render_text

        print(render_text(examination))
    if examination.unfit:
        sys.exit(ExitCode.HOST_NOT_FIT)
