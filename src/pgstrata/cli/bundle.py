"""`pgstrata bundle | unbundle`."""

from pathlib import Path
from typing import Annotated

import typer

from pgstrata.cli.options import StudyArgument


def bundle(
    study: StudyArgument,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="A new file; default NAME.tar.xz.")
    ] = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="KEY", help="Sign it with your SSH key (ssh-keygen -Y sign).")
    ] = None,
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Replace names of hosts and users, addresses, paths, serial numbers.")
    ] = False,
    hide: Annotated[
        list[str] | None,
        typer.Option("--hide", metavar="WORD", help="With --anonymous: replace this word, too (repeatable)."),
    ] = None,
) -> None:
    """Pack a study into one file.

    The file is checked completely when it is opened, and gives the same verdicts. `show`, `report` and `gate` take it
    as they take a folder.
    """
    from pgstrata.app.bundle import bundle_study
    from pgstrata.errors import UsageError
    from pgstrata.report.commands.bundle import render_bundled

    if hide and not anonymous:
        raise UsageError("--hide was given without --anonymous", remedy="add --anonymous")
    print(render_bundled(bundle_study(study, output, key=sign, anonymous=anonymous, hidden=hide or ())), end="")


def unbundle(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A bundle.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="A new folder; default studies/NAME.")
    ] = None,
    signer: Annotated[
        Path | None,
        typer.Option(
            "--signer", metavar="FILE", help="Refuse it unless signed by one of these (ssh's allowed signers)."
        ),
    ] = None,
) -> None:
    """Check a bundle, and unpack it into a folder.

    Exit code 2: the bundle was altered, or is not signed as asked for; then nothing of it is left behind.
    """
    from pgstrata.app.bundle import unbundle as unpack_and_check
    from pgstrata.report.commands.bundle import render_unbundled

    print(render_unbundled(unpack_and_check(file, output, signers=signer)), end="")
