"""What several commands have: options and their values, and an end whose exit code is the answer."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from pgstrata.cli.completion import complete_study

Destination = Annotated[
    str | None, typer.Option("--host", metavar="DESTINATION", help="Another host, as for ssh: db1, user@db1.")
]

Budget = Annotated[str | None, typer.Option("--budget", metavar="TIME", help="Time to spend, such as 10m.")]
StudyArgument = Annotated[
    Path, typer.Argument(metavar="STUDY", help="The folder of a study.", autocompletion=complete_study)
]
StudyOption = Annotated[
    Path | None, typer.Option("--study", metavar="DIR", help="Folder of the study.", autocompletion=complete_study)
]
Threshold = Annotated[
    str | None, typer.Option("--threshold", metavar="RATIO", help="Difference that matters, such as '3 %'.")
]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]
NoQueryText = Annotated[bool, typer.Option("--no-query-text", help="Hashes instead of texts of queries.")]


def duration_of(text: str | None) -> float | None:
    """Seconds; UsageError where it is no duration."""
    return None if text is None else duration_at(text, "--budget")


def duration_at(text: str, option: str, remedy: str = "write a time such as 90s, 10m or 1h30m") -> float:
    """Seconds; UsageError, which names the option, where it is no duration."""
    from pgstrata.errors import UsageError
    from pgstrata.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(str(error), where=option, remedy=remedy) from None


def ratio_of(text: str | None) -> float | None:
    """A ratio between 0 and 1; UsageError where it is none."""
    if text is None:
        return None
    from pgstrata.errors import UsageError
    from pgstrata.units import parse_ratio

    remedy = "write one between 0 and 100 %, such as '3 %'"
    try:
        ratio = parse_ratio(text)
    except ValueError as error:
        raise UsageError(str(error), where="--threshold", remedy=remedy) from None
    if not 0 < ratio < 1:
        raise UsageError(f"a threshold of {ratio * 100:g} % makes no sense", where="--threshold", remedy=remedy)
    return ratio


def end_with(text: str, code: int) -> NoReturn:
    """Print, and end with a code that holds even where the reader has gone: a gate must not open for that."""
    with suppress(BrokenPipeError):
        print(text, end="", flush=True)
    sys.exit(code)
