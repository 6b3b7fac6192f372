"""`pgstrata servers list | fetch | check`."""

import sys
from typing import Annotated

import typer

from pgstrata.cli.completion import complete_level
from pgstrata.cli.options import Json

servers_app = typer.Typer(help="List, fetch and check PostgreSQL servers.", no_args_is_help=True, rich_markup_mode=None)


@servers_app.command("list")
def servers_list(json: Json = False) -> None:
    """List servers that can be levels here."""
    import json as json_module
    from dataclasses import asdict

    from pgstrata.app.machine import open_machine

    with open_machine(_tell) as machine:
        rows = machine.servers.list()
    if json:
        print(json_module.dumps([asdict(row) for row in rows], indent=1))
        return
    width = max(len(row.level) for row in rows)
    for row in rows:
        state = row.where if row.fetched else "not fetched yet"
        print(f"{row.level:<{width}}  {row.version:<12} {row.supplier:<28} {state}")
    print("more: prefix:DIR for any installation, dsn:SERVICE for a running server")


@servers_app.command("fetch")
def servers_fetch(
    levels: Annotated[
        list[str],
        typer.Argument(
            metavar="LEVEL...", help="embedded, 14 ... 18, maven:9.6 ... maven:18", autocompletion=complete_level
        ),
    ],
) -> None:
    """Fetch servers ahead of time.

    Afterwards no network is needed.
    """
    from pgstrata.app.machine import open_machine

    with open_machine(_tell) as machine:
        for build in machine.servers.fetch(levels):
            print(f"{build.spec.text}: {build.version.text}, {build.compiler}, in {build.prefix}")


@servers_app.command("check")
def servers_check(
    levels: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LEVEL...", help="Servers to check; default: all that are there.", autocompletion=complete_level
        ),
    ] = None,
) -> None:
    """Check that the programs of servers start."""
    from pgstrata.app.machine import check_levels, open_machine
    from pgstrata.errors import ExitCode

    healthy = True
    with open_machine(_tell) as machine:
        for level, build, programs in tuple(check_levels(machine, levels or [])):
            print(f"{level}: {build.version.text}, {build.compiler or 'compiler unknown'}")
            for program in programs:
                healthy = healthy and program.works
                print(f"  {'ok  ' if program.works else 'FAIL'} {program.program}: {program.text}")
    if not healthy:
        sys.exit(ExitCode.FAILED)


def _tell(text: str) -> None:
    print(text, file=sys.stderr)
