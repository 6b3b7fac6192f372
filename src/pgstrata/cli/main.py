"""Commands and options; everything behind them lives in `app`."""

import sys
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated

import typer

from pgstrata.cli.bundle import bundle, unbundle
from pgstrata.cli.host import host_app
from pgstrata.cli.merge import gate_merged, is_merged, merge, report_merged, show_merged
from pgstrata.cli.options import Destination, Json, NoQueryText, duration_of, end_with, ratio_of
from pgstrata.cli.servers import servers_app
from pgstrata.cli.vm import vm_app
from pgstrata.cli.workload import workload_app

app = typer.Typer(
    name="pgstrata",
    help="Find which layer changed PostgreSQL's performance, by how much and how surely.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(servers_app, name="servers")
app.add_typer(host_app, name="host")
app.add_typer(workload_app, name="workload")
app.command("bundle")(bundle)
app.command("unbundle")(unbundle)
app.command("merge")(merge)
app.add_typer(vm_app, name="vm")

File = Annotated[Path, typer.Argument(metavar="FILE", help="An experiment file (TOML).")]
StudyArgument = Annotated[Path, typer.Argument(metavar="STUDY", help="The folder of a study.")]
Shown = Annotated[Path, typer.Argument(metavar="STUDY", help="The folder of a study, or a bundle.")]
Prices = Annotated[
    Path | None, typer.Option("--prices", metavar="FILE", help="Prices of this list (TOML) instead of the plan's.")
]
StudyOption = Annotated[Path | None, typer.Option("--study", metavar="DIR", help="Folder of the study.")]
Budget = Annotated[str | None, typer.Option("--budget", metavar="TIME", help="Time to spend, such as 10m.")]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="Seed of the order of runs.")]
EventsOption = Annotated[bool, typer.Option("--events", help="Progress as JSON lines on standard output.")]
Pairs = Annotated[bool, typer.Option("--pairs", help="Also every environment against every other; exploratory.")]
Scale = Annotated[int | None, typer.Option(help="Scale of the dataset.")]
Clients = Annotated[int | None, typer.Option(help="Number of clients.")]
RunLength = Annotated[str | None, typer.Option(help="Length of a run, such as 10s.")]
Threshold = Annotated[
    str | None, typer.Option("--threshold", metavar="RATIO", help="Difference that matters, such as '3 %'.")
]


@app.command()
def init(file: Annotated[Path, typer.Argument(metavar="FILE")] = Path("experiment.toml")) -> None:
    """Write an experiment file to start from."""
    from pgstrata.app.compose import write_example

    write_example(file)
    print(f"{file} is written: edit it, then `pgstrata plan {file}` and `pgstrata run {file}`.")


@app.command("try")
def try_(
    assignments: Annotated[
        list[str], typer.Argument(metavar="FACTOR=LEVEL,LEVEL...", help="server=16,18 for example.")
    ],
    workload: Annotated[
        list[str] | None, typer.Option("--workload", "-w", help="Such as select-only, simple-update, oltp-read-only.")
    ] = None,
    scale: Scale = None,
    clients: Clients = None,
    run: RunLength = None,
    blocks: Annotated[int | None, typer.Option(help="Blocks, at most.")] = None,
    threshold: Threshold = None,
    control: Annotated[bool, typer.Option("--control", help="Add the baseline a second time.")] = False,
    budget: Budget = None,
    seed: Seed = None,
    study: StudyOption = None,
    output: Annotated[Path | None, typer.Option("-o", metavar="FILE", help="Where the experiment file goes.")] = None,
    events: EventsOption = False,
) -> None:
    """Ask in one line: write the experiment file and run it."""
    from pgstrata.app.compose import compose_experiment
    from pgstrata.cli.progress import run_with_progress
    from pgstrata.experiment.compose import Wishes

    wishes = Wishes(workloads=tuple(workload or ()), scale=scale, clients=clients, run=run, blocks=blocks,
                    threshold=threshold, budget=budget, seed=seed, controls=("same",) if control else ())  # fmt: skip
    composed = compose_experiment(assignments, wishes, output)
    print(f"experiment file: {composed.file}", file=sys.stderr if events else sys.stdout)
    for line in composed.remarks:
        print(line, file=sys.stderr if events else sys.stdout)
    run_with_progress(composed.plan, composed.file, study, None, events=events)


@app.command()
def plan(file: File, json: Json = False, seed: Seed = None) -> None:
    """Show what would be done, with forecasts; nothing is touched."""
    from pgstrata.app.question import load_plan
    from pgstrata.report.planning.plan import plan_json, render_plan

    loaded = load_plan(file, seed=seed, sure=False)
    print(plan_json(loaded) if json else render_plan(loaded, str(file)))


@app.command()
def run(
    file: File,
    study: StudyOption = None,
    budget: Budget = None,
    blocks: Annotated[
        int | None, typer.Option("--blocks", help="Most blocks, instead of the file's; more continue a study.")
    ] = None,
    seed: Seed = None,
    events: EventsOption = False,
    no_query_text: NoQueryText = False,
) -> None:
    """Carry out an experiment; the same command resumes it."""
    from pgstrata.app.question import load_plan
    from pgstrata.cli.progress import run_with_progress

    plan_ = load_plan(file, seed=seed, blocks=blocks, query_text=not no_query_text)
    run_with_progress(plan_, file, study, duration_of(budget), events=events)


@app.command()
def show(
    study: Shown,
    json: Json = False,
    format_: Annotated[
        str | None, typer.Option("--format", help="'text': plain, at most 78 columns; 'markdown'.")
    ] = None,
    pairs: Pairs = False,
    why: Annotated[
        bool, typer.Option("--why", help="What the time of a transaction went to, and what differs in it.")
    ] = False,
    no_query_text: NoQueryText = False,
    prices: Prices = None,
) -> None:
    """The answer: in words, then a table for each cell."""
    from pgstrata.app.answer import load_answer
    from pgstrata.app.opened import open_study
    from pgstrata.errors import UsageError

    if format_ not in {None, "text", "markdown"}:
        remedy = "use --format text, --format markdown, or --json"
        raise UsageError(f"{format_!r} is not a valid format", where="--format", remedy=remedy)
    if why and pairs and not json:
        raise UsageError(
            "--why and --pairs are two texts", where="--why", remedy="ask for one of them, or for both with --json"
        )
    if is_merged(study, ("--pairs", pairs), ("--why", why)):
        show_merged(study, json=json, markdown=format_ == "markdown", plain=format_ == "text")
        return
    with open_study(study) as opened:
        answer = load_answer(opened, shifts=json, pairs=pairs, why=why, query_text=not no_query_text, prices=prices)
    if json:
        from pgstrata.report.json.answer import answer_json

        print(answer_json(answer, why=why))
    elif why or format_ or not sys.stdout.isatty():
        from pgstrata.report.answer.causes import make_why_document
        from pgstrata.report.answer.document import make_document
        from pgstrata.report.blocks.markdown import emit_markdown
        from pgstrata.report.blocks.text import emit_text

        emit = emit_markdown if format_ == "markdown" else emit_text
        print(emit(make_why_document(answer) if why else make_document(answer)))
    else:
        from rich.console import Console

        from pgstrata.report.answer.document import make_document
        from pgstrata.report.blocks.terminal import emit_terminal

        console = Console()
        console.print(emit_terminal(make_document(answer), console.width))


@app.command()
def report(
    study: Shown,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE.html", help="Where it goes.")] = None,
    pairs: Pairs = False,
    no_query_text: NoQueryText = False,
    prices: Prices = None,
) -> None:
    """Write one self-contained HTML file: answer, tables, charts."""
    from pgstrata.app.opened import open_study
    from pgstrata.app.report import write_report

    if is_merged(study, ("--pairs", pairs)):
        report_merged(study, output or study / "report.html")
        return
    with open_study(study) as opened:
        bundled = opened.path != study
        target = output or (Path(f"{opened.path.name}.html") if bundled else study / "report.html")
        # the name of a study in a bundle is its author's choice
        written = write_report(
            opened,
            target,
            pairs=pairs,
            query_text=not no_query_text,
            prices=prices,
            new=bundled and output is None,
        )
    print(f"report: {written}")


@app.command()
def floor(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="An experiment file: its cells, on its baseline.")
    ] = None,
    workload: Annotated[
        list[str] | None, typer.Option("--workload", "-w", help="select-only and simple-update if none (repeatable).")
    ] = None,
    scale: Scale = None,
    clients: Clients = None,
    run: RunLength = None,
    server: Annotated[
        str | None,
        typer.Option(
            "--server", metavar="LEVEL", help="embedded (default), 14 to 18, maven:MAJOR, prefix:DIR, dsn:SERVICE."
        ),
    ] = None,
    blocks: Annotated[int | None, typer.Option(help="Blocks, 12 to 24; 13 if none are given.")] = None,
    budget: Budget = None,
    study: StudyOption = None,
    events: EventsOption = False,
    json: Json = False,
) -> None:
    """Measure the noise floor: how much two equal environments differ here.

    It is kept for 30 days; `plan` and `show` say what it lets a study see, and `run` relies on it. Exit code 3: too few
    differences.
    """
    from pgstrata.cli.floor import measure_and_tell
    from pgstrata.experiment.compose import Wishes

    wishes = Wishes(workloads=tuple(workload or ()), scale=scale, clients=clients, run=run)
    time = duration_of(budget)
    measure_and_tell(file, wishes, server=server, blocks=blocks, study=study, budget=time, events=events, json=json)


@app.command()
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
        bool, typer.Option("--lower-is-better", help="Of a metric that pgstrata does not know.")
    ] = False,
    metric: Annotated[
        str | None, typer.Option("--metric", metavar="NAME", help="Which metric of the file, or what its values are.")
    ] = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Environments are ordered levels, as first met in the file: which step?")
    ] = False,
    sequential: Annotated[
        bool, typer.Option("--sequential", help="You look after each new block, until a difference shows.")
    ] = False,
    prices: Annotated[
        Path | None, typer.Option("--prices", metavar="LIST.toml", help="What an hour of each environment costs.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE.html", help="Also one HTML file: answer, tables, charts.")
    ] = None,
) -> None:
    """Apply the rule to other tools' results.

    The file begins with a header: block, environment, value, and cell and metric where there are several, in any
    order; separated by comma, semicolon or tabulator. Exit code 1: something is worse; 3: undecided; 0: neither.
    """
    from pgstrata.app.decide import decide_file
    from pgstrata.compare.gate import import_code
    from pgstrata.compare.one_look import ImportTerms
    from pgstrata.report.commands.decide import decision_json, render_decision

    terms = ImportTerms(
        baseline=baseline, metric=metric, lower_is_better=lower_is_better, ordered=ordered, sequential=sequential
    )
    if (given := ratio_of(threshold)) is not None:
        terms = replace(terms, threshold=given)
    answer = decide_file(file, terms, prices)
    code = import_code(answer)
    if report is not None:
        from pgstrata.app.decision_report import write_decision

        print(f"report: {write_decision(answer, report)}", file=sys.stderr)
    end_with(decision_json(answer) if json else render_decision(answer), code)


@app.command("import")
def import_(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Folders or files of another tool's results.")],
    format_: Annotated[
        str,
        typer.Option(
            "--format", metavar="NAME",
            help="pgbench, sysbench, hammerdb, benchbase, postgresbench, pgbent, table, wide, commits, otava.",
        ),
    ],
    pattern: Annotated[
        str | None,
        typer.Option("--pattern", help="Paths below a folder, such as '{kernel}/{scale}/{run}/{mode}-{clients}.log'."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B,...", help="Columns of a table without header; - for none.")
    ] = None,
    index: Annotated[
        str | None, typer.Option("--index", metavar="A,B", help="Columns of a wide table that are not compared.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", metavar="A,B", help="Metrics to keep; of a table the columns of values.")
    ] = None,
    compare: Annotated[
        str | None, typer.Option("--compare", metavar="A,B", help="The dimension that is compared, or several.")
    ] = None,
    repeat: Annotated[
        str | None, typer.Option("--repeat", metavar="NAME", help="The dimension that numbers repeats, if not run.")
    ] = None,
    repeats: Annotated[
        str | None,
        typer.Option("--repeats", help="How repeats were measured: in-turns, one-after-another or unknown."),
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE.csv", help="Where it goes.")] = None,
) -> None:  # fmt: skip
    """Turn other tools' results into one file of observations, for `decide`.

    What does not fit the pattern, did not finish or cannot be read is listed. Without --repeats there are no blocks.
    """
    from pgstrata.cli.importing import import_and_tell

    import_and_tell(paths, format_=format_, pattern=pattern, columns=columns, index=index, metric=metric,
                    compare=compare, repeat=repeat, repeats=repeats, output=output)  # fmt: skip


@app.command()
def export(
    source: Annotated[
        Path, typer.Argument(metavar="STUDY|FILE", help="The folder of a study, or a table as `decide` takes it.")
    ],
    format_: Annotated[str, typer.Option("--format", metavar="NAME", help="csv, otava or parquet.")] = "csv",
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where it goes.")] = None,
) -> None:
    """Write all measurements of a study, or of a table, to one file for other tools.

    CSV is what `decide` takes. Parquet needs pyarrow.
    """
    from pgstrata.app.export import export_results

    done = export_results(source, format_, output)
    print(f"{done.output}: {done.rows:,} rows of {done.observations:,} runs")


@app.command()
def gate(
    study: Shown,
    json: Json = False,
    metric: Annotated[
        str | None, typer.Option("--metric", metavar="NAME", help="Another metric than the plan's: never passes.")
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


@app.command()
def bisect(
    file: File,
    factor: Annotated[
        str | None, typer.Option("--factor", metavar="KEY", help="The factor; needless where there is only one.")
    ] = None,
    git: Annotated[
        str | None, typer.Option("--git", metavar="GOOD..BAD", help="Search along commits of PostgreSQL instead.")
    ] = None,
    repo: Annotated[Path | None, typer.Option("--repo", metavar="DIR", help="Where --git finds the commits.")] = None,
    study: Annotated[Path | None, typer.Option("--study", metavar="DIR", help="Folder of the search.")] = None,
    budget: Budget = None,
    json: Json = False,
) -> None:
    """Find the level at which a metric changed.

    The ends are compared first, then the level in the middle of what is left, by a study each. The same command goes on
    with what is there. Exit code 0: found, or no change; 3: undecided, or several levels are left.
    """
    from pgstrata.cli.bisect import bisect_and_end

    bisect_and_end(
        file, factor=factor, commits=git, repository=repo, study=study, budget=duration_of(budget), json=json
    )


@app.command()
def reparse(study: StudyArgument) -> None:
    """Derive everything anew from the evidence of a study."""
    from pgstrata.app.wiring import reparse as derive_anew
    from pgstrata.store.repository import StudyFolder

    print(f"{derive_anew(StudyFolder(study))} runs derived anew from their evidence")


@app.command()
def doctor(host: Destination = None, json: Json = False) -> None:
    """Examine this host, or another: what can be a factor there, what measuring costs, how quiet it is.

    It takes about ten seconds, changes nothing, says what would make the rest possible and what would be run with
    sudo. Exit code 4: nothing can be measured there.
    """
    from pgstrata.app.doctor import examine_here
    from pgstrata.app.remote_doctor import examine_there
    from pgstrata.errors import ExitCode
    from pgstrata.report.commands.doctor import MOST_COLUMNS, doctor_json, render_text

    if sys.stderr.isatty():
        print(f"examining {host or 'this host'}: about ten seconds", file=sys.stderr)
    examination = examine_here() if host is None else examine_there(host)
    columns = max(80, min(MOST_COLUMNS, get_terminal_size().columns)) if sys.stdout.isatty() else MOST_COLUMNS
    print(doctor_json(examination) if json else render_text(examination, columns))
    if examination.unfit:
        sys.exit(ExitCode.HOST_NOT_FIT)


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        from pgstrata import __version__

        print(f"pgstrata {__version__}")
        raise typer.Exit
