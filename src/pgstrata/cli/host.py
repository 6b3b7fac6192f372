"""`pgstrata host status | restore`."""

from typing import Annotated

import typer

from pgstrata.cli.options import Destination, Json, end_with

host_app = typer.Typer(help="Show and undo changes of a host.", no_args_is_help=True, rich_markup_mode=None)


@host_app.command("status")
def host_status(
    host: Destination = None,
    json: Json = False,
) -> None:
    """Show what is changed on a host.

    It says who changed it, and how it is undone. Exit code 4: a pgstrata that has ended left changes behind.
    """
    from pgstrata.app.host import show_host
    from pgstrata.errors import ExitCode
    from pgstrata.report.commands.host import host_state_json, render_host_state

    state = show_host(host)
    text = host_state_json(state) if json else render_host_state(state)
    end_with(text, ExitCode.DONE if state.clean else ExitCode.HOST_NOT_FIT)


@host_app.command("restore")
def host_restore(
    host: Destination = None,
    force: Annotated[bool, typer.Option("--force", help="Also undo what somebody else has changed since.")] = False,
) -> None:
    """Undo changes that a killed pgstrata left.

    Values that a reboot has reset are only noted. Exit code 4: a change could not be undone, and its entry is kept.
    """
    from pgstrata.app.host import restore_host
    from pgstrata.report.commands.host import render_undone

    print(render_undone(restore_host(host, force=force)), end="")
