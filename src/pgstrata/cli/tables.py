"""`pgstrata decide | import | export`: results of other tools, and results for them."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from pgstrata.cli.completion import complete_any
from pgstrata.cli.documents import CSV, MARKDOWN, Charts, FormatOrNumbers, choose_format, write_files
from pgstrata.cli.live import Begin, End
from pgstrata.cli.options import Json, NoQueryText, Threshold, end_with, ratio_of
from pgstrata.importers.results import FormatName


def decide(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.csv", allow_dash=True, help="Results of any tool; - is standard input.")
    ],
    json: Json = False,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="NAME", help="Environment to compare with.")
    ] = None,
    threshold: Threshold = None,
    lower_is_better: Annotated[
        bool,
        typer.Option("--lower-is-better", help="Lower values are better, in a metric that pgstrata does not know."),
    ] = False,
    metric: Annotated[
        str | None, typer.Option("--metric", metavar="NAME", help="Which metric of the file, or what its values are.")
    ] = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Environments are levels in the order of the file: find steps.")
    ] = False,
    sequential: Annotated[
        bool, typer.Option("--sequential", help="You decide after each new block, until a difference shows.")
    ] = False,
    prices: Annotated[
        Path | None, typer.Option("--prices", metavar="LIST.toml", help="A list of the price per hour of environments.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE.html", help="Also write one HTML file: answer, tables, charts."),
    ] = None,
    charts: Charts = None,
    format_: FormatOrNumbers = None,
) -> None:
    """Apply the rule to other tools' results.

    The file begins with a header: block, environment, value, and cell and metric if there are several, in any order,
    separated by comma, semicolon or tab. Exit code 1: something is worse; 3: undecided; 0: neither.
    """
    from pgstrata.app.decide import decide_file
    from pgstrata.compare.gate import import_code
    from pgstrata.compare.one_look import ImportTerms
    from pgstrata.report.commands.decide import decision_json, render_decision

    format_ = choose_format(format_, CSV)
    terms = ImportTerms(
        baseline=baseline, metric=metric, lower_is_better=lower_is_better, ordered=ordered, sequential=sequential
    )
    if (given := ratio_of(threshold)) is not None:
        terms = replace(terms, threshold=given)
    answer = decide_file(file, terms, prices)
    code = import_code(answer)
    if report is not None or charts is not None or format_ == MARKDOWN:
        from pgstrata.report.blocks.markdown import emit_markdown
        from pgstrata.report.commands.decision_page import make_decision_document

        document = make_decision_document(answer)
        write_files(document, report, charts)
        if format_ == MARKDOWN and not json:
            end_with(emit_markdown(document), code)
    if format_ == CSV and not json:
        from pgstrata.report.answer.numbers import import_numbers, render_numbers

        end_with(render_numbers(import_numbers(answer)), code)
    end_with(decision_json(answer) if json else render_decision(answer), code)


def import_(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Folders or files of another tool's results.")],
    format_: Annotated[
        str,
        typer.Option("--format", metavar="NAME", help=f"{', '.join(FormatName)}."),
    ],
    pattern: Annotated[
        str | None,
        typer.Option("--pattern", help="Paths below a folder, such as '{kernel}/{scale}/{run}/{mode}-{clients}.log'."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="A,B,...", help="Names for columns of a table without header; - skips one."),
    ] = None,
    index: Annotated[
        str | None, typer.Option("--index", metavar="A,B", help="Columns of a wide table that are not environments.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", metavar="A,B", help="Metrics to keep; for a table, its columns of values.")
    ] = None,
    compare: Annotated[
        str | None, typer.Option("--compare", metavar="A,B", help="The dimension that is compared, or several of them.")
    ] = None,
    repeat: Annotated[
        str | None,
        typer.Option("--repeat", metavar="NAME", help="The dimension that numbers repeats; default run, repeat, ..."),
    ] = None,
    repeats: Annotated[
        str | None,
        typer.Option("--repeats", help="How repeats were measured: in-turns, one-after-another or unknown."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE.csv", help="A new file; default NAME-observations.csv."),
    ] = None,
) -> None:  # fmt: skip
    """Turn other tools' results into a table.

    `decide` reads the table. Files that do not fit the pattern, runs that did not finish and lines that cannot be read
    are listed. There are no blocks unless --repeats says in-turns.
    """
    from pgstrata.cli.importing import import_and_tell

    import_and_tell(paths, format_=format_, pattern=pattern, columns=columns, index=index, metric=metric,
                    compare=compare, repeat=repeat, repeats=repeats, output=output)  # fmt: skip


def export(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY|ARCHIVE|FILE",
            help="The folder of a study or of an archive, or a table as `decide` takes it.",
            autocompletion=complete_any,
        ),
    ],
    format_: Annotated[
        str, typer.Option("--format", metavar="NAME", help="csv, otava or parquet; of an archive csv or parquet.")
    ] = "csv",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="A new file, of an archive a new folder; default NAME-export and its type.",
        ),
    ] = None,
    begin: Begin = None,
    end: End = None,
    step: Annotated[
        str | None,
        typer.Option("--by", metavar="STEP", help="Rows of an archive by second (default), or by minute."),
    ] = None,
    tables: Annotated[
        list[str] | None,
        typer.Option("--table", metavar="NAME", help="Only this table of an archive (repeatable), such as sessions."),
    ] = None,
    no_query_text: NoQueryText = False,
) -> None:
    """Write measurements for other tools.

    Those of a study or a table go into a file, the tables of an archive into a folder. `decide` reads the CSV file of a
    study. Parquet needs pyarrow.
    """
    from pgstrata.app.export import export_results
    from pgstrata.app.export_archive import ArchiveWishes, export_archive, is_archive
    from pgstrata.errors import UsageError
    from pgstrata.units import render_count

    wishes = ArchiveWishes(begin=begin, end=end, step=step, tables=tuple(tables or ()), query_text=not no_query_text)
    if is_archive(source):
        written = export_archive(source, format_, output, wishes)
        for name, rows in written.rows.items():
            print(f"{written.output / name}: {render_count(rows, 'row')}")
        return
    if wishes != ArchiveWishes():
        given = {"--from": begin, "--to": end, "--by": step, "--table": tables, "--no-query-text": no_query_text}
        option = next(name for name, value in given.items() if value)
        raise UsageError("this is only for archives", where=option, remedy="leave it out, or give an archive's folder")
    done = export_results(source, format_, output)
    print(f"{done.output}: {done.rows:,} rows of {done.observations:,} runs")
