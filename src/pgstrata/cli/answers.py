"""`pgstrata show | report | gate | reparse`: the answer of a study that is there."""

from pathlib import Path
from typing import Annotated

import typer

from pgstrata.cli.completion import (
    complete_axis,
    complete_filter,
    complete_key,
    complete_metric,
    complete_shown,
    complete_sort,
)
from pgstrata.cli.documents import CSV, Charts, FormatOrNumbers, choose_format, print_document
from pgstrata.cli.merge import gate_merged, is_merged, report_merged, show_merged
from pgstrata.cli.options import Json, NoQueryText, StudyArgument, Threshold, end_with, ratio_of

Shown = Annotated[
    Path, typer.Argument(metavar="STUDY", help="The folder of a study, or a bundle.", autocompletion=complete_shown)
]
Prices = Annotated[
    Path | None,
    typer.Option("--prices", metavar="FILE", help="Use the prices of this list (TOML) instead of the plan's."),
]
Pairs = Annotated[bool, typer.Option("--pairs", help="Also every environment against every other; exploratory.")]


def show(
    study: Shown,
    json: Json = False,
    format_: FormatOrNumbers = None,
    pairs: Pairs = False,
    why: Annotated[
        bool, typer.Option("--why", help="Where the time of a transaction went, and what differs in it.")
    ] = False,
    details: Annotated[
        bool, typer.Option("--details", help="Also on a terminal: tables of cells, settings, machines, runs.")
    ] = False,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="FACTOR=LEVEL",
            help="Only comparisons with this level, of a factor or of workload, scale, clients (repeatable).",
            autocompletion=complete_filter,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="FACTOR",
            help="As a matrix with a column for each level of this factor.",
            autocompletion=complete_key,
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort", metavar="WHAT", help="As a list, sorted by effect, name or cell.", autocompletion=complete_sort
        ),
    ] = None,
    no_query_text: NoQueryText = False,
    prices: Prices = None,
) -> None:
    """Print the answer of a study.

    It prints sentences, then a matrix of differences, then the doubts. With --format or --details, and if the output
    is a file or a pipe, tables of cells, settings and machines follow.
    """
    from pgstrata.app.answer import load_answer
    from pgstrata.app.opened import open_study
    from pgstrata.errors import UsageError

    format_ = choose_format(format_, CSV)
    numbers = format_ == CSV
    if why and pairs and not (json or numbers):
        raise UsageError(
            "--why and --pairs cannot be combined", where="--why", remedy="ask for one of them, or for both with --json"
        )
    selected = next((name for name, value in (("--filter", filters), ("--by", by), ("--sort", sort)) if value), "")
    if selected and (why or pairs or json or numbers):
        remedy = "leave out --why, --pairs, --json and --format csv, which show everything"
        raise UsageError("only comparisons with the baseline can be selected", where=selected, remedy=remedy)
    if is_merged(study, ("--pairs", pairs), ("--why", why), ("--prices", prices), (selected, selected)):
        show_merged(study, format_, json=json)
        return
    with open_study(study) as opened:
        shifts, texts = json or numbers, not no_query_text
        answer = load_answer(opened, shifts=shifts, pairs=pairs, why=why, query_text=texts, prices=prices)
    if json:
        from pgstrata.report.json.answer import answer_json

        print(answer_json(answer, why=why))
    elif numbers:
        from pgstrata.report.answer.numbers import render_numbers, study_numbers

        print(render_numbers(study_numbers(answer)), end="")
    elif why:
        from pgstrata.report.answer.causes import make_why_document

        print_document(make_why_document(answer), format_ or "text")
    elif selected:
        from pgstrata.report.answer.selection import make_selected_document, parse_selection

        chosen = parse_selection(filters or (), by, sort, answer.study.plan.experiment)
        print_document(make_selected_document(answer, chosen), format_)
    else:
        from pgstrata.report.answer.document import make_document
        from pgstrata.report.blocks.terminal import Extent

        short, whole = Extent.TABLES if pairs else Extent.ANSWER, Extent.WHOLE
        print_document(make_document(answer), format_, whole if details else short)


def report(
    study: Shown,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.html", help="Where the report goes.")
    ] = None,
    pairs: Pairs = False,
    no_query_text: NoQueryText = False,
    prices: Prices = None,
    along: Annotated[
        list[str] | None,
        typer.Option(
            "--along",
            metavar="AXIS",
            help="Draw all charts along this axis (clients, scale or a factor), and along no other (repeatable).",
            autocompletion=complete_axis,
        ),
    ] = None,
    charts: Charts = None,
) -> None:
    """Write a report as one HTML file.

    It has the answer, tables and charts, and loads nothing from elsewhere.
    """
    from pgstrata.app.opened import open_study
    from pgstrata.app.report import write_report

    if is_merged(study, ("--pairs", pairs), ("--prices", prices), ("--along", along)):
        report_merged(study, output or study / "report.html", charts)
        return
    with open_study(study) as opened:
        bundled = opened.path != study
        target = output or (Path(f"{opened.path.name}.html") if bundled else study / "report.html")
        # the name of a study in a bundle is its author's choice
        new = bundled and output is None
        written = write_report(
            opened, target, pairs=pairs, query_text=not no_query_text, prices=prices, along=along or (), charts=charts,
            new=new,
        )  # fmt: skip
    print(f"report: {written}")
    if charts is not None:
        print(f"charts: {charts}")


def gate(
    study: Shown,
    json: Json = False,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Another metric than the plan's; with it, the gate never passes.",
            autocompletion=complete_metric,
        ),
    ] = None,
    threshold: Threshold = None,
) -> None:
    """Judge a study for a script by its exit code.

    0: nothing is worse by the metric and the threshold of the plan. 1: something is. 3: undecided, or a control
    differs, or nothing is worse by another metric or threshold than the plan's.
    """
    from pgstrata.app.gate import load_gate
    from pgstrata.app.opened import open_study
    from pgstrata.report.commands.gate import gate_json, render_gate

    if is_merged(study, ("--metric", metric), ("--threshold", threshold)):
        gate_merged(study, json=json)
    with open_study(study) as opened:
        found = load_gate(opened, metric=metric, threshold=ratio_of(threshold))
    end_with(gate_json(found) if json else render_gate(found), found.code)


def reparse(study: StudyArgument) -> None:
    """Derive a study anew from its evidence."""
    from pgstrata.app.wiring import reparse as derive_anew
    from pgstrata.store.repository import StudyFolder

    print(f"{derive_anew(StudyFolder(study))} runs derived anew from their evidence")
