"""`pgstrata merge`, and merged studies shown, reported and judged."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from pgstrata.cli.completion import complete_shown
from pgstrata.cli.documents import CSV, print_document
from pgstrata.cli.options import end_with


def merge(
    studies: Annotated[
        list[str],
        typer.Argument(
            metavar="STUDY...",
            help="Two or more studies or bundles; NAME=STUDY names one.",
            autocompletion=complete_shown,
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FOLDER", help="A new folder.")],
    factor: Annotated[
        str, typer.Option("--factor", metavar="NAME", help="How they differ: host, boot, day or your own word.")
    ] = "host",
) -> None:
    """Merge studies of machines, boots or days.

    They must have the same metric, threshold, baseline, environments and cells. Each keeps its own blocks. `show`,
    `report` and `gate` take the new folder.
    """
    from pgstrata.app.merge import merge_studies

    answer = merge_studies(studies, output, factor)
    print(f"merged: {output} ({len(answer.parts)} studies; pgstrata show {output})")


def is_merged(folder: Path, *refused: tuple[str, object]) -> bool:
    """Whether it is a merged study; UsageError if one of the `refused` options (name and value) was given."""
    from pgstrata.store.study import MERGED_FILE

    with suppress(OSError):
        if (folder / MERGED_FILE).is_file():
            if given := [name for name, value in refused if value]:
                from pgstrata.errors import UsageError

                remedy = f"use it with a single part: {folder}/parts/NAME"
                raise UsageError("this option cannot be used with a merged study", where=given[0], remedy=remedy)
            return True
    return False


def show_merged(folder: Path, format_: str | None, *, json: bool) -> None:
    """Print the answer of a merged study, as `show` prints that of a study."""
    from pgstrata.app.merge import load_merged
    from pgstrata.report.answer.merged import make_merged_document, merged_json

    answer = load_merged(folder)
    if json:
        print(merged_json(answer))
    elif format_ == CSV:
        from pgstrata.report.answer.numbers import merged_numbers, render_numbers

        print(render_numbers(merged_numbers(answer)), end="")
    else:
        print_document(make_merged_document(answer), format_)


def report_merged(folder: Path, target: Path, charts: Path | None) -> None:
    """Write the report of a merged study, and its charts into a folder where one is given."""
    from pgstrata.app.charts import write_charts
    from pgstrata.app.merge import load_merged
    from pgstrata.app.report import write_page
    from pgstrata.report.answer.merged import make_merged_document

    document = make_merged_document(load_merged(folder))
    if charts is not None:
        write_charts(document, charts)
    print(f"report: {write_page(document, target, option='-o')}")
    if charts is not None:
        print(f"charts: {charts}")


def gate_merged(folder: Path, *, json: bool) -> NoReturn:
    """Judge a merged study: it is worse if any part is worse."""
    from pgstrata.app.merge import load_merged
    from pgstrata.compare.merged import merged_code
    from pgstrata.report.answer.merged import merged_json, say_merged

    answer = load_merged(folder)
    text = merged_json(answer) if json else "".join(f"{line}.\n" for line in say_merged(answer))
    end_with(text, merged_code(answer))
