"""`pgstrata init`: a file to start from."""

from pathlib import Path
from typing import Annotated

import typer

from pgstrata.cli.completion import complete_question


def init(
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="QUESTION",
            help="See --list; versions if none is given. A name that ends in .toml is FILE.",
            autocompletion=complete_question,
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A new file; default: named after the question.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the questions that there are files for.")] = False,
) -> None:
    """Write an experiment file to start from.

    The file is commented. You can run it unchanged, or edit it first. `init live` writes commands for a server that is
    in use. No file is overwritten.
    """
    from pgstrata.app.init import DEFAULT, QUESTIONS, load_template, write_template

    if list_:
        width = max(map(len, QUESTIONS))
        for name in QUESTIONS:
            print(f"{name:{width}}  {load_template(name).asks}")
        return
    if file is None and question is not None and question.endswith(".toml"):
        template, written = write_template(DEFAULT, Path(question))
    else:
        template, written = write_template(question or DEFAULT, file)
    if template.experiment:
        print(f"{written} is written: edit it, then `pgstrata plan {written}` and `pgstrata run {written}`.")
    else:
        print(f"{written} is written: read it, and enter its commands one by one.")
